"""The versions of the operators as a table: since which opset, what runs them, inputs, attributes, element types.

A new version is a new line of `VERSIONS`. The public functions take the prefix of their errors from the newest one.
"""

from collections import abc
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

from gpuslice.dtypes import FLOATS, INDEX, T15, T16
from gpuslice.lazy import sequences, slicing


@dataclass(frozen=True)
class Input:
    """An input of an operator version.

    Attributes
    ----------
    name : str
    types : str
        Type variable. Inputs that share one must have one type.
    kind : {"tensor", "sequence", "index"}
        An index is read as Python ints; tensors and sequences hold the data.
    optional, variadic : bool
    """

    name: str
    types: str
    kind: Literal["tensor", "sequence", "index"] = "tensor"
    optional: bool = False
    variadic: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether its items say what the operator does. The sizes of Split-1 do, and have the type of its data."""
        return self.kind == "index" or self.name == "split"


@dataclass(frozen=True)
class Attribute:
    """An attribute of an operator version: an int, a list of ints, or the number of an element type."""

    name: str
    kind: Literal["int", "ints", "type"] = "int"
    required: bool = False


@dataclass(frozen=True)
class Version:
    """An operator as of one opset.

    Attributes
    ----------
    operator, since : str, int
        Together the name, such as Slice-13.
    run : callable
        Its function in `gpuslice.lazy`.
    inputs, attributes : tuple
    types : dict
        Names of the element types that each type variable admits.
    many_outputs : bool
        Whether a node may have more than one output. ``run`` gets the number as ``outputs``.
    """

    operator: str
    since: int
    run: abc.Callable[..., abc.Sequence[Any]]
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...] = ()
    types: dict[str, frozenset[str]] = field(default_factory=lambda: {"T": T15, "I": INDEX})
    many_outputs: bool = False

    @cached_property
    def name(self) -> str:
        """Operator and version, such as Slice-13."""
        return f"{self.operator}-{self.since}"

    @cached_property
    def required(self) -> tuple[int, ...]:
        """Positions of the inputs that may not be omitted."""
        return tuple(position for position, entry in enumerate(self.inputs) if not entry.optional)

    def bounds(self, count: int) -> frozenset[int]:
        """Return which of so many inputs say what the operator does."""
        entries = map(self.input, range(count))
        return frozenset(i for i, entry in enumerate(entries) if entry is not None and entry.is_bound)

    def input(self, position: int) -> Input | None:
        """Return the input at a position; None past the last."""
        if position < len(self.inputs):
            return self.inputs[position]
        return self.inputs[-1] if self.inputs and self.inputs[-1].variadic else None


_T16 = {"T": T16, "I": INDEX}
_ONLY_INT64 = {"T": T16, "I": frozenset({"int64"})}
_DATA, _INPUT, _SEQUENCE = Input("data", "T"), Input("input", "T"), Input("input_sequence", "T", "sequence")
_BOUNDS = (Input("starts", "I", "index"), Input("ends", "I", "index"), Input("axes", "I", "index", optional=True))
_SLICE = (_DATA, *_BOUNDS, Input("steps", "I", "index", optional=True))
_BOUNDS_1 = (Attribute("starts", "ints", True), Attribute("ends", "ints", True), Attribute("axes", "ints"))
_SPLIT = (_INPUT, Input("split", "I", "index", optional=True))
_SPLIT_1 = (_INPUT, Input("split", "T", optional=True))
_AXIS, _SIZES = Attribute("axis"), Attribute("split", "ints")
_POSITION, _POSITION_OR_END = Input("position", "I", "index"), Input("position", "I", "index", optional=True)
_KEEPDIMS = (_AXIS, Attribute("keepdims"))
_CONCAT = (Attribute("axis", required=True), Attribute("new_axis"))

VERSIONS = (
    Version("Slice", 1, slicing.slice_1, (_DATA,), _BOUNDS_1),
    Version("Slice", 10, slicing.slice_10, _SLICE),
    Version("Slice", 11, slicing.slice_10, _SLICE),
    Version("Slice", 13, slicing.slice_10, _SLICE, types=_T16),
    Version("DynamicSlice", 1, slicing.slice_10, (_DATA, *_BOUNDS)),
    Version("Split", 1, slicing.split_1, _SPLIT_1, (_AXIS, _SIZES), {"T": FLOATS}, many_outputs=True),
    Version("Split", 2, slicing.split_2, (_INPUT,), (_AXIS, _SIZES), many_outputs=True),
    Version("Split", 11, slicing.split_2, (_INPUT,), (_AXIS, _SIZES), many_outputs=True),
    Version("Split", 13, slicing.split_13, _SPLIT, (_AXIS,), _ONLY_INT64, many_outputs=True),
    Version("Split", 18, slicing.split_18, _SPLIT, (_AXIS, Attribute("num_outputs")), _ONLY_INT64, many_outputs=True),
    Version("SequenceAt", 11, sequences.sequence_at, (_SEQUENCE, _POSITION)),
    Version("SequenceConstruct", 11, sequences.sequence_construct, (Input("inputs", "T", variadic=True),)),
    Version("SequenceEmpty", 11, sequences.sequence_empty, (), (Attribute("dtype", "type"),)),
    Version("SequenceInsert", 11, sequences.sequence_insert, (_SEQUENCE, Input("tensor", "T"), _POSITION_OR_END)),
    Version("SequenceErase", 11, sequences.sequence_erase, (_SEQUENCE, _POSITION_OR_END)),
    Version("SequenceLength", 11, sequences.sequence_length, (_SEQUENCE,)),
    Version("SplitToSequence", 11, sequences.split_to_sequence, _SPLIT, _KEEPDIMS),
    Version("SplitToSequence", 24, sequences.split_to_sequence, _SPLIT, _KEEPDIMS, _T16),
    Version("ConcatFromSequence", 11, sequences.concat_from_sequence, (_SEQUENCE,), _CONCAT),
)

OPERATORS = tuple(dict.fromkeys(version.operator for version in VERSIONS))


@cache
def find_version(operator: str, opset: int) -> Version:
    """Return the newest version of an operator that an opset has.

    Raises
    ------
    ValueError
        The operator is not in the table, or it is newer than ``opset``.
    """
    versions = [version for version in VERSIONS if version.operator == operator]
    if not versions:
        raise ValueError(f"{operator}: not a supported operator; supported are {', '.join(OPERATORS)}")
    known = [version for version in versions if version.since <= opset]
    if not known:
        raise ValueError(f"{operator}: needs opset {versions[0].since} or newer; got opset {opset}")
    return known[-1]


def newest(operator: str) -> str:
    """Return the name of an operator's newest version, such as "Slice-13"."""
    return [version.name for version in VERSIONS if version.operator == operator][-1]
