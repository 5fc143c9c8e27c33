"""Read from machine code how many bytes a thread loads before it waits for the first of them.

A load takes hundreds of cycles, so bandwidth needs many loads under way at once. A thread waits at the first instruction
that uses a register whose load is under way. A **phase** goes from a load to that instruction, or to a store. Branches
and predicates are followed both ways, so a phase has several ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sass import Instruction

VECTOR = 16
_ENDS = ("STG", "STS", "EXIT", "RET")
_FORKS = ("BRA", "EXIT", "LDG")  # if their predicate is not known, both ways are followed


@dataclass(frozen=True)
class Load:
    """A load: its number in the code, the register and the constant that make its address, and its bytes."""

    number: int
    base: str
    constant: int
    bytes: int


@dataclass(frozen=True)
class Path:
    """What a thread did since its phase began.

    Attributes
    ----------
    at : int
        The number of the next instruction.
    loads : tuple of Load
    pending : frozenset of int
        The registers that they write.
    known : frozenset of (str, bool)
        The values of predicates.
    guarded : bool or None
        Whether loads under predicates that are not known are executed: all of a path or none.
    written : tuple of int
        What was written to since the first load: a base that was is another base.
    """

    at: int
    loads: tuple[Load, ...] = ()
    pending: frozenset[int] = frozenset()
    known: frozenset[tuple[str, bool]] = frozenset()
    guarded: bool | None = None
    written: tuple[int, ...] = field(default=(), compare=False)

    def bytes(self) -> int:
        """Return the bytes of all loads."""
        return sum(load.bytes for load in self.loads)

    def is_misaligned(self, read: int) -> bool:
        """Return whether one more vector than ``read`` was loaded for each that is wanted."""
        places = {(load.base, load.constant) for load in self.loads if load.bytes == VECTOR}
        behind = (all((base, at + i * VECTOR) in places for i in range(read + 1)) for base, at in places)
        count = len(self.loads)
        return read > 0 and (any(behind) or (read > 1 and count % read > 0 and count % (read + 1) == 0))


def in_flight(code: Sequence[Instruction], read: int, sources: int = 1) -> tuple[int, int]:
    """Return how many bytes of a long run are under way, if its source is aligned to vectors and if it is not.

    The vectors of a long run are loaded from one register, or two, and constants. Those of short runs are loaded from a
    register each, so such phases count only if there are no others.

    Parameters
    ----------
    code : sequence of Instruction
        A kernel.
    read : int
        Vectors that it reads for one or more that it writes; 0 if it has no long runs, so that all phases count. A source
        that is not aligned has one more, whose bytes do not count: neighbouring threads load them too.
    sources : int
        How many arrays these vectors come from. With several, each has registers of its own; the first load of a long run
        has no predicate, and those of the vectors that only misaligned sources need have one.
    """
    if sources > 1:
        return _in_flight_of_several(code, read, sources)
    found: dict[bool, list[tuple[int, int]]] = {False: [(-VECTOR, 0)], True: [(-VECTOR, 0)]}
    for path in _phases(code, "LDG.E.128.CONSTANT" if read else "LDG"):
        misaligned, registers = path.is_misaligned(read), max(2, len({load.base for load in path.loads}))
        count = path.bytes() * read // (read + 1) if misaligned else path.bytes()
        found[misaligned].append((-registers if read else 0, count))
    return max(found[False])[-1], max(found[True])[-1]


def _in_flight_of_several(code: Sequence[Instruction], read: int, sources: int) -> tuple[int, int]:
    found: dict[bool, list[tuple[bool, int]]] = {False: [(False, 0)], True: [(False, 0)]}
    for path in _phases(code, "LDG.E.128.CONSTANT"):
        misaligned = path.guarded is True
        count = path.bytes() * read // (read + sources) if misaligned else path.bytes()
        found[misaligned].append((not code[path.loads[0].number].predicate, count))
    return max(found[False])[-1], max(found[True])[-1]


def _phases(code: Sequence[Instruction], opcode: str) -> Iterator[Path]:
    """Yield the ends of all phases that begin with such a load.

    A load in the middle of one begins no other, unless the phase can be without what comes before the load.
    """
    starts = [start for start, instruction in enumerate(code) if instruction.opcode.startswith(opcode)]
    ends = {start: list(_ends(code, start)) for start in starts}
    inside = {
        load.number
        for start, paths in ends.items()
        for path in paths
        for load in path.loads[1:]
        if code[start].predicate in ("", code[load.number].predicate)
    }
    for start in ends.keys() - inside:
        yield from ends[start]


def _ends(code: Sequence[Instruction], start: int) -> Iterator[Path]:
    """Yield the ends of the phase that begins with a load."""
    predicate = code[start].predicate
    known = {(predicate.lstrip("@!"), "!" not in predicate)} if predicate else ()
    paths, seen = [Path(start, known=frozenset(known))], set()
    while paths:
        path = paths.pop()
        if path in seen:
            continue
        seen.add(path)
        instruction = code[path.at]
        ends = instruction.opcode.startswith(_ENDS) and not instruction.predicate
        if ends or not path.pending.isdisjoint(instruction.registers):
            yield path
        else:
            paths += _after(instruction, path)


def _after(instruction: Instruction, path: Path) -> Iterator[Path]:
    """Yield where a path goes on: one path, or two if a predicate is not known."""
    skipped = replace(path, at=path.at + 1)
    name, wanted, known = instruction.predicate.lstrip("@!"), "!" not in instruction.predicate, dict(path.known)
    if not name or name in known:
        yield _executed(instruction, skipped) if not name or known[name] == wanted else skipped
    elif not instruction.opcode.startswith(_FORKS):
        yield _executed(instruction, skipped)
    else:
        for executed in (True, False):
            if instruction.loads and path.guarded is (not executed):
                continue
            guarded = executed if instruction.loads else path.guarded
            now = replace(skipped, known=path.known | {(name, executed == wanted)}, guarded=guarded)
            yield _executed(instruction, now) if executed else now


def _executed(instruction: Instruction, path: Path) -> Path:
    """Return the path after an instruction that was executed."""
    if instruction.target is not None:
        return replace(path, at=instruction.target)
    if instruction.loads:
        first, load = instruction.registers[0], _load(instruction, path)
        pending = path.pending.union(range(first, first + max(1, load.bytes // 4)))
        return replace(path, loads=(*path.loads, load), pending=pending)
    known = frozenset(one for one in path.known if one[0] not in instruction.operands.split(",")[:2])
    written = (*path.written, *instruction.registers[:1]) if path.loads else ()
    return replace(path, known=known, written=written)


def _load(instruction: Instruction, path: Path) -> Load:
    """Return what a load loads. Its operands end like ``[R22.64+0x10]``."""
    address = instruction.operands.rsplit("[", 1)[-1].rstrip("]")
    base, _, constant = address.rpartition("+")
    if not constant.lstrip("-").startswith("0x"):
        base, constant = address, "0"
    changes = sum(path.written.count(register) for register in instruction.registers[1:2])
    return Load(path.at - 1, f"{base} {changes}", int(constant, 16), instruction.bits // 8)
