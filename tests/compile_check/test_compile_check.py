"""What the compile check reads from machine code and from the log of ptxas, and what it refuses."""

import check
import pytest
from compiled import Compiled, accesses, keys, least_in_flight, usage
from in_flight import in_flight
from sass import Instruction


@pytest.mark.parametrize(
    ("opcodes", "load_bits", "store_bits"),
    [
        ("LDG.E.128.CONSTANT STG.E.EF.128 LDG.E.U8 STG.E.U8 EXIT", 128, 128),
        ("LDG.E.U16 STG.E.EF.64", 16, 64),
        ("LDG.E STG.E.EF", 32, 32),
        ("LDG.E.U8 STG.E.128", 8, 0),  # not a store of a whole vector
        ("LDS.128 STS.128 EXIT", 0, 0),
    ],
)
def test_the_widest_accesses(opcodes, load_bits, store_bits):
    assert accesses([Instruction(name) for name in opcodes.split()]) == {
        "load_bits": load_bits,
        "store_bits": store_bits,
    }


def test_the_log_of_ptxas():
    log = """ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 8448 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 44 registers, used 0 barriers
"""
    assert usage(log) == {
        "one": {"registers": 32, "stack": 8, "spill_stores": 4, "spill_loads": 12},
        "two": {"registers": 44, "stack": 0, "spill_stores": 0, "spill_loads": 0},
    }


def code(text):
    """Return instructions that are written like ``@P0 LDG.E.128 R4,[R2.64]``; branches go to lines, not to addresses."""
    found = []
    for line in text.strip().splitlines():
        predicate, rest = line.split(maxsplit=1) if line.strip().startswith("@") else ("", line)
        opcode, _, operands = rest.strip().partition(" ")
        if opcode.startswith("BRA"):
            *others, at = operands.split(",")
            operands = ",".join([*others, hex(16 * int(at))])
        found.append(Instruction(opcode, operands, predicate))
    return found


ALIGNED = "\n".join(f"LDG.E.128.CONSTANT R{4 + 4 * i},desc[UR4][R2.64+{hex(0x1000 * i)}]" for i in range(4))
BEHIND = "\n".join(f"LDG.E.128.CONSTANT R{20 + 4 * i},desc[UR4][R2.64+{hex(0x1000 * i + 16)}]" for i in range(4))

APART = "\n".join(f"LDG.E.128.CONSTANT R{4 * i},[R{4 * i + 20}]" for i in (1, 2, 3))
PIXELS = "\n".join(f"@P0 LDG.E.128.CONSTANT R{4 + 4 * i},[R2+{hex(16 * i)}]" for i in range(3))


@pytest.mark.parametrize(
    ("read", "text", "aligned", "misaligned"),
    [
        (1, f"{ALIGNED}\nSTG.E.EF.128 [R40],R4\nEXIT", 64, 0),
        (
            1,
            "LDG.E.128.CONSTANT R4,[R2]\nPRMT R4,R4,0x1,R5\nLDG.E.128.CONSTANT R8,[R2+0x1000]\nEXIT",
            16,
            0,
        ),  # waits in between
        (1, "LDG.E.128.CONSTANT R4,[R2]\nIADD3 R9,R9,0x1,RZ\nLDG.E.128.CONSTANT R12,[R2+0x1000]\nEXIT", 32, 0),
        (1, "LDG.E.128.CONSTANT R4,[R2]\nSTG.E.EF.128 [R40],R20\nLDG.E.128.CONSTANT R12,[R2+0x1000]\nEXIT", 16, 0),
        (1, f"{ALIGNED}\n{BEHIND}\nEXIT", 0, 64),
        (
            1,
            "LDG.E.128.CONSTANT R4,[R2]\nIADD3 R2,R2,R9,RZ\nLDG.E.128.CONSTANT R8,[R2+0x10]\nEXIT",
            32,
            0,
        ),  # another base
        (1, f"@P0 BRA 5\n{ALIGNED}\nLDG.E.128.CONSTANT R36,[R2.64+0x8000]\nEXIT", 80, 0),
        (1, f"{ALIGNED}\n@P0 BRA 7\nLDG.E.128.CONSTANT R36,[R2.64+0x8000]\nEXIT\nEXIT", 80, 0),
        (
            2,
            "LDG.E.128.CONSTANT R4,[R2]\nLDG.E.128.CONSTANT R8,[R2+0x10]\n@P0 LDG.E.128.CONSTANT R12,[R2+0x20]\nEXIT",
            32,
            32,
        ),
        (
            3,
            "LDG.E.128.CONSTANT R4,[R2]\nLDG.E.128.CONSTANT R8,[R2+0x10]\nLDG.E.128.CONSTANT R12,[R2+0x20]\n@P0 LDG.E.128.CONSTANT R16,[R20]\nEXIT",
            48,
            48,
        ),
        # What is loaded from one register or two counts.
        (1, f"LDG.E.128.CONSTANT R4,[R2]\nEXIT\n{APART}\nEXIT", 16, 0),
        (0, f"LDG.E.128.CONSTANT R4,[R2]\nEXIT\n{APART}\nEXIT", 48, 0),
        (1, f"{APART}\nEXIT", 48, 0),
        # A phase can begin with a load that is left out.
        (3, f"@P1 LDG.E.128.CONSTANT R16,[R20]\n{PIXELS}\n@P0 STG.E.EF.128 [R40],R4\nEXIT", 48, 48),
        (0, "LDG.E.U8 R4,[R2]\nLDG.E.U8 R5,[R6]\nEXIT", 2, 0),
        (1, "LDG.E.128 R4,[R2]\nEXIT\n@P0 LDG.E.128.CONSTANT R4,[R2]\nEXIT", 16, 0),  # a load of an item
        (1, "STG.E.128 [R2],R4\nEXIT", 0, 0),
        # A store waits for all of its registers, even if its predicate is not known.
        (0, "LDG.E R4,[R2]\nLDG.E R7,[R2+0x4]\n@P0 STG.E.EF.128 [R40],R4\n@P1 BRA 0\nEXIT", 8, 0),
        (0, "LDG.E R7,[R2]\n@P0 STG.E.EF.128 [R40],R4\nLDG.E R20,[R2]\nEXIT", 4, 0),
    ],
)
def test_the_bytes_in_flight(read, text, aligned, misaligned):
    assert in_flight(code(text), read) == (aligned, misaligned)


TWO = """
LDG.E.128.CONSTANT R4,[R2]
{0}@P0 LDG.E.128.CONSTANT R8,[R2+0x10]
LDG.E.128.CONSTANT R12,[R30]
@P1 LDG.E.128.CONSTANT R16,[R32]
STG.E.EF.128 [R40],R4
"""
EACH = "\n".join(f"@P2 LDG.E.128.CONSTANT R{4 + 4 * i},[R{30 + i}]" for i in range(3)) + "\nEXIT"


@pytest.mark.parametrize(
    ("text", "aligned", "misaligned"),
    [
        (f"{TWO.format('')}EXIT", 32, 32),
        (f"{TWO.format('')}{EACH}", 32, 32),  # other loads that a long run has not
        (f"{TWO.format('PRMT R4,R4,0x1,R5' + chr(10))}EXIT", 16, 16),  # waits in between
        (EACH, 48, 0),  # there is no long run
    ],
)
def test_the_bytes_in_flight_from_two_sources(text, aligned, misaligned):
    assert in_flight(code(text.strip()), 2, 2) == (aligned, misaligned)


@pytest.mark.parametrize(
    ("kernel", "least"),
    [
        (("rows", 1, -1), (64, 64)),
        (("rows", 2, 3), (48, 48)),
        (("rows", 1, 0), (32, 0)),
        (("planes", 1, 2), (64, 64)),
        (("rearranged", 4, -3), (48, 48)),
        (("planes", 2, 4), (64, 64)),
        (("interleaved", 1, 3), (48, 48)),
        (("interleaved", 4, -31), (48, 48)),
        (("pixel_tiles", 1, 3), (64, 0)),
        (("stacked", 4, 0), (64, 0)),
        (("pixel_rows", 1, 0), (32, 0)),
        (("pixel_rows", 4, 0), (48, 0)),
        (("pixel_rows", 2, 2), (64, 64)),
    ],
)
def test_the_least_bytes_in_flight(kernel, least):
    assert least_in_flight(*kernel) == least


FINE = {"registers": 40, "stack": 0, "spill_stores": 0, "spill_loads": 0, "load_bits": 128, "store_bits": 128}
FINE |= {"aligned": 64, "misaligned": 64}


@pytest.mark.parametrize(
    ("kernel", "changed", "why"),
    [
        (("rows", 1, -1), {}, None),
        (("rows", 1, -1), {"load_bits": 64}, "loads 64 bits"),
        (("rows", 1, 0), {"load_bits": 8}, None),
        (("rows", 2, 0), {"load_bits": 8}, "loads 8 bits at most and stores 128, not 16 and 128"),
        (("tiles", 4, 0), {"load_bits": 32}, "loads 32"),
        (("tiles", 4, 0), {"store_bits": 32}, "stores 32"),
        (("planes", 1, 3), {"stack": 8}, "8 bytes of stack"),
        (("planes", 1, 3), {"spill_stores": 8}, "8 stored"),
        (("planes", 1, 3), {"spill_loads": 8}, "8 loaded"),
        (("planes", 1, 3), {"registers": 65}, "65 registers, more than 64"),
        (("rows", 1, -1), {"aligned": 48}, "48 bytes in flight, misaligned 64, not 64 and 64"),
        (("rows", 1, -1), {"misaligned": 16}, "64 bytes in flight, misaligned 16"),
        (("planes", 1, 3), {"aligned": 48, "misaligned": 48}, None),
        (("tiles", 4, 0), {"misaligned": 0}, None),
        (("rearranged", 1, 3), {"error": "no"}, "no"),
    ],
)
def test_what_is_broken(kernel, changed, why):
    found = Compiled("13.2", "sm_90", *kernel, 32, 8, **FINE | changed)
    assert found.broken() is None if why is None else why in found.broken()
    assert check.report([found]) == (why is not None)


def test_the_quick_choice_has_every_kind_width_and_index():
    def classes(chosen):
        return {(kind, width, bits) for kind, width, _, bits, _ in chosen}

    few, every = keys(quick=True), keys()
    assert len(few) < len(every) / 9
    assert classes(few) == classes(every)


def test_the_table(monkeypatch):
    monkeypatch.setattr(check, "version", lambda name: "13.2")
    results = [Compiled("13.2", "sm_90", "rows", 1, -1, bits, 1, **FINE | {"registers": bits}) for bits in (32, 64)]
    results.append(Compiled("12.9", "sm_90", "rows", 1, 0, 32, 1, error="no"))
    lines = check.table(results).splitlines()
    assert "| 13.2 | sm_90 | 2 | 0 | 64 |" in lines
    assert "| 12.9 | sm_90 | 1 | 1 | - |" in lines
    assert "| rows<1, -1> | 32 | 64 | 128 | 128 |" in lines
    assert "| rows<1, -1> | 64 / 64 |" in lines
    assert "| rows<1, 0> | - / - |" in lines


@pytest.mark.parametrize(
    ("architectures", "quick", "jobs"),
    [
        (None, True, [("13.2", "sm_75"), ("13.2", "sm_120"), ("13.0", "sm_90"), ("13.0", "sm_120"), ("12.9", "sm_90")]),
        (["sm_80"], False, [("13.2", "sm_80")]),
        (["sm_90"], True, [("13.2", "sm_90"), ("13.0", "sm_90"), ("12.9", "sm_90")]),
    ],
)
def test_what_compiles_for_which_architecture(architectures, quick, jobs):
    assert check.jobs_for(architectures, quick) == jobs


def test_a_run_goes_on_from_the_results_of_others(tmp_path, monkeypatch, capsys):
    """Results of other sources are compiled again; the table has all of them."""
    monkeypatch.setattr(check, "version", lambda name: "13.2")
    asked = []

    def compiled(wanted, processes):
        asked.append(wanted)
        if wanted:
            yield [Compiled(cuda, arch, *key, **FINE) for cuda, arch, key in wanted]

    monkeypatch.setattr(check, "compiled", compiled)
    file, output = tmp_path / "results.jsonl", tmp_path / "table.md"
    words = ["check.py", "--kind", "rows", "--variant", "-1", "--results", str(file), "--output", str(output), "--arch"]
    rows = [key for key in keys() if key[0] == "rows" and key[2] == -1]
    for sources, archs, new in [
        ("one", ["sm_75"], ["sm_75"]),
        ("one", ["sm_75", "sm_80"], ["sm_80"]),
        ("one", ["sm_80", "sm_75"], []),
        ("two", ["sm_75"], ["sm_75"]),
    ]:
        monkeypatch.setattr(check, "digest", lambda sources=sources: sources)
        monkeypatch.setattr(check.sys, "argv", [*words, *archs])
        assert check.main() == 0
        assert asked.pop() == [("13.2", arch, key) for arch in new for key in rows]
        lines = output.read_text().splitlines()
        assert [line for line in lines if line.startswith("| 13.2 |")] == [
            f"| 13.2 | {arch} | {len(rows)} | 0 | 40 |" for arch in archs
        ]
    assert capsys.readouterr().err.count(f"{len(rows)} instantiations, 0 broken") == 2
