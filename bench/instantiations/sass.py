"""What machine code does: how wide it loads and stores, and how many instructions it runs for 16 bytes.

The kernels store whole vectors past the caches (``__stcs``, in SASS ``.EF``) and nothing else so: those stores are the
main path. The loops around them are the main loops: one for vectors that are in one run, found together, and one for
vectors that are found one by one.
"""

import heapq
from collections.abc import Collection, Sequence
from typing import Any

BYTES = 16  # of an instruction
WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
Instruction = dict[str, Any]


def measured(instructions: Sequence[Instruction], gathers: bool) -> dict[str, int | None]:
    """Give what one kernel's code comes to.

    Parameters
    ----------
    instructions : sequence of dict
    gathers : bool
        Whether the vectors of the main path are put together from items; else they are loaded whole.
    """
    code = list(instructions)
    while code and (code[-1]["opcode"] == "NOP" or _is_last(code)):
        code.pop()  # padding
    opcodes = [instruction["opcode"] for instruction in code]
    return {
        "load_bits": max((_bits(name) for name in opcodes if name.startswith("LDG")), default=0),
        "store_bits": max((_bits(name) for name in opcodes if name.startswith("STG")), default=0),
        "main_store_bits": max((_bits(name) for name in opcodes if _is_main_store(name)), default=0),
        "instructions": len(code),
        **Graph(code).main_loops(gathers),
    }


def _is_last(code: Sequence[Instruction]) -> bool:
    return code[-1]["opcode"] == "BRA" and _target(code[-1]) == len(code) - 1  # a branch to itself ends a function


def _bits(opcode: str) -> int:
    return next((WIDTHS[part] for part in opcode.split(".") if part in WIDTHS), 32)


def _is_main_store(opcode: str) -> bool:
    return opcode.startswith("STG") and ".EF" in opcode


def _target(instruction: Instruction) -> int:
    return int(instruction["operands"].split(",")[-1].strip().strip("`()"), 16) // BYTES


class Graph:
    """The basic blocks of a kernel, each named by its first instruction.

    Parameters
    ----------
    code : sequence of dict
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        jumps = {i: _target(one) for i, one in enumerate(code) if one["opcode"].split(".")[0] == "BRA"}
        ends = {i for i, one in enumerate(code) if one["opcode"].split(".")[0] in ("BRA", "EXIT", "RET", "BRX", "JMP")}
        starts = sorted({0, *jumps.values(), *(i + 1 for i in ends)} - {len(code)})
        self.blocks = {start: code[start:end] for start, end in zip(starts, [*starts[1:], len(code)], strict=True)}
        self.after: dict[int, set[int]] = {}
        for start, block in self.blocks.items():
            last = start + len(block) - 1
            follows = {jumps[last]} if last in jumps else set()
            if last not in ends or _may_go_on(code[last]):
                follows.add(last + 1)
            self.after[start] = follows & self.blocks.keys()

    def reach(self, start: int, inside: Collection[int] | None = None) -> set[int]:
        """Give the blocks that can come after one, perhaps without leaving a set of blocks."""
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            new = {at for at in self.after[waiting.pop()] if inside is None or at in inside} - seen
            seen |= new
            waiting += new
        return seen

    def main_loops(self, gathers: bool) -> dict[str, int | None]:
        """Give the instructions of all main loops, and of the shortest rounds of the best and the worst of them.

        A round is a path through a loop that passes every load and every store of a whole vector. Nothing is known
        where stores lie outside of loops, or a loop is entered in several places.
        """
        counts = {at: sum(_is_main_store(one["opcode"]) for one in block) for at, block in self.blocks.items()}
        stores = {at for at, count in counts.items() if count}
        around = {at: {block for block in self.reach(at) if at in self.reach(block)} for at in stores}
        loops = {min(loop, default=-1): loop for loop in around.values()}
        rounds = [self._round(loop, {at: counts[at] for at in stores & loop}, gathers) for loop in loops.values()]
        known = sorted((found for found in rounds if found is not None), key=lambda found: found[0] / found[1])
        if not known or len(known) != len(rounds):
            known = [(None, None)]
        return {
            "loop_instructions": sum(len(self.blocks[at]) for loop in loops.values() for at in loop),
            "best_instructions": known[0][0],
            "best_vectors": known[0][1],
            "worst_instructions": known[-1][0],
            "worst_vectors": known[-1][1],
        }

    def _round(self, loop: set[int], stores: dict[int, int], gathers: bool) -> tuple[int, int] | None:
        """Give the length of the shortest round of a loop, and the vectors it stores."""
        heads = {at for block in self.blocks.keys() - loop for at in self.after[block] if at in loop}
        if len(heads) != 1:
            return None
        (head,) = heads
        ahead = {at: self.reach(at, loop - {head}) for at in loop}
        # Loads in loops of their own, and those that no store comes after, are of items.
        loads = {at for at in loop if self._loads(at, gathers) and at not in ahead[at] and ahead[at] & stores.keys()}
        to_store = _layers(stores, ahead)
        length = self._shortest(head, [*_layers(loads, ahead), *to_store], loop)
        return None if length is None else (length, sum(min(stores[at] for at in layer) for layer in to_store))

    def _loads(self, at: int, gathers: bool) -> bool:
        opcodes = [instruction["opcode"] for instruction in self.blocks[at]]
        return any(name.startswith("LDG") and (gathers or "CONSTANT" in name) for name in opcodes)

    def _shortest(self, head: int, layers: Sequence[set[int]], loop: set[int]) -> int | None:
        """Give the length of the shortest path from the head back to it by way of one block of every layer."""
        best = {head: len(self.blocks[head])}
        for layer in layers:
            reached = self._distances(best, loop - {head})
            best = {at: reached[at] for at in layer if at in reached}
        reached = self._distances(best, loop - {head})
        return min((reached[at] for at in reached if head in self.after[at]), default=None)

    def _distances(self, starts: dict[int, int], inside: set[int]) -> dict[int, int]:
        known: dict[int, int] = {}
        waiting = [(length, at) for at, length in starts.items()]
        heapq.heapify(waiting)
        while waiting:
            length, at = heapq.heappop(waiting)
            if at not in known:
                known[at] = length
                for after in self.after[at] & inside:
                    heapq.heappush(waiting, (length + len(self.blocks[after]), after))
        return known


def _may_go_on(instruction: Instruction) -> bool:
    """Tell whether what ends a block may be passed: it has a predicate, or a condition among its operands."""
    conditional = instruction["opcode"].startswith("BRA") and "," in instruction["operands"]
    return conditional or instruction.get("predicate", "@PT") not in ("@PT", "@UPT")


def _layers(blocks: Collection[int], ahead: dict[int, set[int]]) -> list[set[int]]:
    """Put blocks that exclude each other together, those that others must come before first."""
    left, layers = set(blocks), []
    while left:
        layers.append({at for at in left if not any(at in ahead[other] for other in left - {at})} or set(left))
        left -= layers[-1]
    return layers
