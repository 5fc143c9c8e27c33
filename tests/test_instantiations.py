"""What the table of compiled kernels reads from machine code, on code small enough to count by hand."""

import pytest

from bench.instantiations.compiled import Compiled, _usage
from bench.instantiations.sass import measured
from bench.instantiations.table import write_json, write_markdown


def code(text):
    """Make instructions as nvdisasm gives them; jumps name lines, which hold 16 bytes each."""
    instructions = []
    for line in text.strip().splitlines():
        words = line.split()
        instruction = {"predicate": words.pop(0)} if words[0].startswith("@") else {}
        instruction["opcode"] = words[0]
        if len(words) > 1:
            *rest, last = words[1:]
            instruction["operands"] = ",".join([*rest, hex(16 * int(last)) if words[0].startswith("BRA") else last])
        instructions.append(instruction)
    return instructions


# Lines 1 to 9 are a loop: two vectors, one of them loaded from either of two places, and an item on the way.
LOOP = """
MOV R0
ISETP R1
LDG.E.128.CONSTANT R4
@P0 BRA 6
LDG.E.128.CONSTANT R8
LDG.E.128.CONSTANT R8
STG.E.EF.128 R4
STG.E.EF.128 R8
STG.E.U8 R9
BRA.U UP1 1
EXIT
BRA 11
NOP
"""


def test_a_loop_is_counted():
    assert measured(code(LOOP), gathers=False) == {
        "load_bits": 128,
        "store_bits": 128,
        "main_store_bits": 128,
        "instructions": 11,
        "loop_instructions": 9,
        "best_instructions": 9,
        "best_vectors": 2,
        "worst_instructions": 9,
        "worst_vectors": 2,
    }


def test_the_shorter_of_two_loads_counts():
    text = """
MOV R0
@P0 BRA 5
LDG.E.128.CONSTANT R4
LDG.E.128.CONSTANT R8
BRA 6
LDG.E.128.CONSTANT R4
STG.E.EF.128 R4
BRA.U UP1 1
EXIT
"""
    found = measured(code(text), gathers=False)
    assert (found["loop_instructions"], found["best_instructions"], found["best_vectors"]) == (7, 4, 1)


def test_code_without_loops_has_no_rounds():
    found = measured(code("LDG.E.U8 R4\nSTG.E.EF.128 R4\nEXIT\nBRA 3"), gathers=True)
    assert (found["load_bits"], found["instructions"], found["best_instructions"]) == (8, 3, None)


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
    assert _usage(log) == {
        "one": {"registers": 32, "stack": 8, "spill_stores": 4, "spill_loads": 12, "shared": 8448},
        "two": {"registers": 44, "stack": 0, "spill_stores": 0, "spill_loads": 0, "shared": 0},
    }


FINE = {"registers": 40, "stack": 0, "spill_stores": 0, "spill_loads": 0, "load_bits": 128, "main_store_bits": 128}


@pytest.mark.parametrize(
    ("kernel", "changed", "why"),
    [
        (("rows", 1, -1), {}, None),
        (("rows", 1, -1), {"load_bits": 64}, "loads 64 bits"),
        (("rows", 1, 0), {"load_bits": 8}, None),
        (("tiles", 4, 0), {"load_bits": 32}, "loads 32"),
        (("tiles", 4, 0), {"main_store_bits": 32}, "stores 32"),
        (("planes", 1, 3), {"stack": 8, "spill_stores": 8}, "8 bytes of stack"),
        (("rearranged", 1, 3), {"error": "no"}, "no"),
    ],
)
def test_what_is_broken(kernel, changed, why):
    found = Compiled("13", "sm_90", *kernel, 32, 8, **FINE | changed).broken()
    assert found is None if why is None else why in found


def test_tables_can_be_written():
    results = [Compiled("13", "sm_90", "rows", 1, -1, bits, 1, **FINE) for bits in (32, 64)]
    about = {"date": "2026-11-30", "commit": "0", "versions": {"nvidia-cuda-nvrtc": "13"}}
    assert "| rows<1, -1> | 40 / 40 |" in write_markdown(results, about)
    assert '["13","sm_90","rows",1,-1,32,1,40' in write_json(results, about)
