"""What the compile check reads from machine code and from the log of ptxas, and what it refuses."""

import check
import pytest
from compiled import Compiled, accesses, keys, usage


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
    assert accesses(opcodes.split()) == {"load_bits": load_bits, "store_bits": store_bits}


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


FINE = {"registers": 40, "stack": 0, "spill_stores": 0, "spill_loads": 0, "load_bits": 128, "store_bits": 128}


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
        (("rearranged", 1, 3), {"error": "no"}, "no"),
    ],
)
def test_what_is_broken(kernel, changed, why):
    found = Compiled("13", "sm_90", *kernel, 32, 8, **FINE | changed)
    assert found.broken() is None if why is None else why in found.broken()
    assert check.report([found]) == (why is not None)


def test_the_quick_choice_has_every_kind_width_and_index():
    def classes(chosen):
        return {(kind, width, bits) for kind, width, _, bits, _ in chosen}

    few, every = keys(quick=True), keys()
    assert len(few) < len(every) / 10
    assert classes(few) == classes(every)


def test_the_table(monkeypatch):
    monkeypatch.setattr(check, "version", lambda name: "13.2")
    results = [Compiled("13", "sm_90", "rows", 1, -1, bits, 1, **FINE | {"registers": bits}) for bits in (32, 64)]
    results.append(Compiled("12", "sm_90", "rows", 1, 0, 32, 1, error="no"))
    lines = check.table(results).splitlines()
    assert "| 13 | sm_90 | 2 | 0 | 64 |" in lines
    assert "| 12 | sm_90 | 1 | 1 | - |" in lines
    assert "| rows<1, -1> | 32 | 64 | 128 | 128 |" in lines


@pytest.mark.parametrize(
    ("architectures", "quick", "jobs"),
    [
        (None, True, [("13", "sm_75"), ("13", "sm_120"), ("12", "sm_90")]),
        (["sm_80"], False, [("13", "sm_80")]),
        (["sm_90"], True, [("13", "sm_90"), ("12", "sm_90")]),
    ],
)
def test_what_compiles_for_which_architecture(architectures, quick, jobs):
    assert check.jobs_for(architectures, quick) == jobs
