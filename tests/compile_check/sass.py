"""Instructions of compiled kernels, as nvdisasm prints them."""

import re
from dataclasses import dataclass

_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
_BYTES = 16  # of an instruction
_REGISTER = re.compile(r"\bR(\d+)\b")


@dataclass(frozen=True)
class Instruction:
    """An instruction of a kernel.

    Attributes
    ----------
    opcode, operands : str
        Such as ``LDG.E.128.CONSTANT`` and ``R4,desc[UR10][R22.64+0x10]``.
    predicate : str
        Such as ``@!P0``; empty if the instruction is always executed.
    """

    opcode: str
    operands: str = ""
    predicate: str = ""

    @property
    def loads(self) -> bool:
        """Whether it loads from global memory."""
        return self.opcode.startswith("LDG")

    @property
    def bits(self) -> int:
        """How many bits a load or store moves."""
        return next((_BITS[part] for part in self.opcode.split(".") if part in _BITS), 32)

    @property
    def registers(self) -> list[int]:
        """The registers that are named, and those behind the named one from which a wide store takes its value."""
        named = [int(number) for number in _REGISTER.findall(self.operands)]
        if self.opcode.startswith("ST") and re.search(r",R\d+$", self.operands):
            named += range(named[-1] + 1, named[-1] + self.bits // 32)
        return named

    @property
    def target(self) -> int | None:
        """The number of the instruction that a branch goes to."""
        if not self.opcode.startswith("BRA"):
            return None
        return int(self.operands.rsplit(",", 1)[-1], 16) // _BYTES
