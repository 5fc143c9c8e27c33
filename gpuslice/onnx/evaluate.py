"""Run one operator version on values: check them against its schema, then call its adapter."""

from collections.abc import Mapping
from collections.abc import Sequence as Values
from typing import Any

import numpy as np

from gpuslice.arrays import base_array, dtype_name, is_array, namespace
from gpuslice.engine import Joined, View, dense
from gpuslice.onnx.adapters import Value, as_array
from gpuslice.onnx.schemas import Attribute, Input, Version
from gpuslice.onnx.types import check_text
from gpuslice.sequence import Sequence, as_sequence


def evaluate(version: Version, inputs: Values[Any], attributes: Mapping[str, Any], outputs: int = 1) -> list[Value]:
    """Give the outputs of an operator version, not yet copied.

    Parameters
    ----------
    version : Version
    inputs : sequence
        Positional; None for an omitted one. Tensors are arrays, `View` or `Joined`; index tensors may be Python ints.
    attributes : mapping
        By ONNX name.
    outputs : int
        How many outputs the node has.

    Raises
    ------
    TypeError
        An element type outside the version's list, or several where it wants one.
    IndexError
        A position.
    ValueError
        Anything else; no message is prefixed.
    """
    check_attributes(version, attributes)
    check_outputs(version, outputs)
    check_input_count(version, [value is not None for value in inputs])
    return apply(version, inputs, attributes, outputs)


def apply(version: Version, inputs: Values[Any], attributes: Mapping[str, Any], outputs: int) -> list[Value]:
    """Do as `evaluate` for a node whose attributes and numbers of inputs and outputs have been checked."""
    bound: dict[str, tuple[int, str]] = {}
    values = [_checked(version, i, value, bound) for i, value in enumerate(inputs)]
    count = {"outputs": outputs} if version.many_outputs else {}
    return version.run(*values, **attributes, **count)


def check_attributes(version: Version, attributes: Mapping[str, Any]) -> None:
    """Refuse attributes that a version does not have, lacks, or has of another kind."""
    allowed = {attribute.name: attribute for attribute in version.attributes}
    for name, value in attributes.items():
        if name not in allowed:
            raise ValueError(f"attribute {name} is not one of this version, which has {_names(version.attributes)}")
        ints = value if isinstance(value, (list, tuple)) else [value]
        if isinstance(value, (list, tuple)) != (allowed[name].kind == "ints") or any(type(v) is not int for v in ints):
            kind = "a list of ints" if allowed[name].kind == "ints" else "an int"
            raise ValueError(f"attribute {name} must be {kind}; got {value!r}")
    for attribute in version.attributes:
        if attribute.required and attribute.name not in attributes:
            raise ValueError(f"attribute {attribute.name} is required and was not given")


def check_outputs(version: Version, outputs: int) -> None:
    """Refuse a number of outputs that a version can't have."""
    if outputs < 1 or (outputs > 1 and not version.many_outputs):
        raise ValueError(f"outputs must be {'at least 1' if version.many_outputs else 'exactly 1'}; got {outputs}")


def check_input_count(version: Version, given: Values[bool]) -> None:
    """Refuse inputs past the last of a version, and missing ones; ``given`` says of each whether it is there."""
    if given and version.input(len(given) - 1) is None:
        count = len(version.inputs)
        raise ValueError(f"inputs must be at most {count}, {_names(version.inputs)}; got {len(given)}")
    for position in version.required:
        if position >= len(given) or not given[position]:
            raise ValueError(f"input {version.inputs[position].name} is required and was not given")
    if version.inputs and version.inputs[-1].variadic and not all(given):
        raise ValueError(f"{version.inputs[-1].name} must all be there; input {list(given).index(False)} was not given")


def finish(values: Values[Value | None]) -> list[Any]:
    """Make all values dense in one launch; sequences keep the arrays they refer to and get copies of views."""
    deferred = [value for value in values if isinstance(value, (View, Joined))]
    if len(deferred) == len(values):
        return dense(deferred)
    deferred = []
    for value in values:
        items = value if isinstance(value, Sequence) else [value]
        deferred += [item for item in items if isinstance(item, (View, Joined))]
    arrays = iter(dense(deferred))

    def finished(value: Any) -> Any:
        if isinstance(value, (View, Joined)):
            return next(arrays)
        if isinstance(value, Sequence):
            return Sequence.holding([finished(item) for item in value], value.dtype)
        return value

    return [finished(value) for value in values]


def _checked(version: Version, position: int, value: Any, bound: dict[str, tuple[int, str]]) -> Any:
    """Give an input as its kind is, of a type that the version admits, the same for all of one type variable."""
    expected = version.input(position)
    if value is None or expected is None:
        return None
    if expected.kind == "sequence":
        if isinstance(value, (list, tuple)) and not value:
            return value  # onnx.reference's empty sequence, which has forgotten its type
        value = as_sequence(value)
        name = value.dtype
    else:
        if type(value) is not np.ndarray:
            value = _tensor(version, position, value)
            if expected.kind == "index" and not is_array(value):
                return value  # Python ints, which are of no type and fit any
        name = dtype_name(value.dtype)
    if name not in version.types[expected.types]:
        listed = ", ".join(sorted(version.types[expected.types]))
        raise TypeError(f"{_argument(version, position)} must be of a type in {{{listed}}}; got {name}")
    if name == "string":
        for array in value if expected.kind == "sequence" else [value]:
            check_text(array, _argument(version, position))
    first, known = bound.setdefault(expected.types, (position, name))
    if name != known:
        of = _argument(version, first)
        raise TypeError(f"{_argument(version, position)} must be of the type of {of}, {known}; got {name}")
    return value


def _tensor(version: Version, position: int, value: Any) -> Any:
    """Give a tensor as an array or a view; of an index also Python ints."""
    expected = version.input(position)
    if expected is not None and expected.kind == "index":
        return as_array(value)
    if isinstance(value, (View, Joined)):
        return value
    namespace(value, _argument(version, position))
    return base_array(value)


def _argument(version: Version, position: int) -> str:
    expected = version.input(position)
    if expected is None:
        return str(position)
    return f"{expected.name}[{position}]" if expected.variadic else expected.name


def _names(entries: Values[Input | Attribute]) -> str:
    return ", ".join(entry.name for entry in entries) or "none"
