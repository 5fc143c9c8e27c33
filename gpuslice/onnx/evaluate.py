"""Runs one operator version: checks inputs and attributes against the table of versions, then calls its function."""

import reprlib
from collections import abc
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np

from gpuslice.dtypes import dtype_name
from gpuslice.engine import Consecutive, Joined, View, dense
from gpuslice.lazy.slicing import as_array
from gpuslice.libraries import is_array, library_of, plain_array
from gpuslice.onnx.types import check_text, name_of_elem_type
from gpuslice.sequence import Item, Sequence, as_sequence, items_of
from gpuslice.versions import Attribute, Input, Version

Value: TypeAlias = Item | Sequence[Any]
Values: TypeAlias = abc.Sequence[Value]

_LAZY = frozenset((View, Joined))


def evaluate(
    version: Version, inputs: abc.Sequence[Any], attributes: abc.Mapping[str, Any], outputs: int = 1
) -> Values:
    """Return the outputs of an operator version, not yet copied.

    Parameters
    ----------
    version : Version
    inputs : sequence
        Positional; None for an omitted one. Tensors are arrays, `View` or `Joined`; an index may be Python ints.
    attributes : mapping
        By ONNX name.
    outputs : int
        How many outputs the node has.

    Raises
    ------
    TypeError
        An element type is not in the version's list, or inputs that share a type variable have several types.
    IndexError
        A position is out of range.
    ValueError
        Anything else. No message has a prefix.
    """
    checked = check_attributes(version, attributes)
    check_outputs(version, outputs)
    check_input_count(version, [value is not None for value in inputs])
    return apply(version, inputs, checked, outputs)


def apply(version: Version, inputs: abc.Sequence[Any], attributes: abc.Mapping[str, Any], outputs: int) -> Values:
    """Do what `evaluate` does for a node whose attributes and numbers of inputs and outputs are already checked."""
    bound: dict[str, tuple[str, str]] = {}
    values = [_checked(version, i, value, bound) for i, value in enumerate(inputs)]
    count = {"outputs": outputs} if version.many_outputs else {}
    return version.run(*values, **attributes, **count)


def check_attributes(version: Version, attributes: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes, element types by name; raise ValueError for unknown, missing and mistyped ones."""
    allowed = {attribute.name: attribute for attribute in version.attributes}
    checked = {}
    for name, value in attributes.items():
        if name not in allowed:
            raise ValueError(f"attribute {name} does not exist in this version, which has {_names(version.attributes)}")
        kind = allowed[name].kind
        ints = value if isinstance(value, (list, tuple)) else [value]
        if isinstance(value, (list, tuple)) != (kind == "ints") or any(type(number) is not int for number in ints):
            wanted = "a list of ints" if kind == "ints" else "an int"
            raise ValueError(f"attribute {name} must be {wanted}; got {reprlib.repr(value)}")
        checked[name] = name_of_elem_type(value) if kind == "type" else value
    for attribute in version.attributes:
        if attribute.required and attribute.name not in attributes:
            raise ValueError(f"attribute {attribute.name} is required and was not given")
    return checked


def check_outputs(version: Version, outputs: int) -> None:
    """Raise ValueError if a version cannot have so many outputs."""
    if outputs < 1 or (outputs > 1 and not version.many_outputs):
        raise ValueError(f"outputs must be {'at least 1' if version.many_outputs else 'exactly 1'}; got {outputs}")


def check_input_count(version: Version, given: abc.Sequence[bool]) -> None:
    """Raise ValueError for inputs past the last of a version and for missing ones.

    ``given`` has one bool per input of the node: whether it is present.
    """
    if given and version.input(len(given) - 1) is None:
        count = len(version.inputs)
        raise ValueError(f"inputs must be at most {count}, {_names(version.inputs)}; got {len(given)}")
    for position in version.required:
        if position >= len(given) or not given[position]:
            raise ValueError(f"input {version.inputs[position].name} is required and was not given")
    if version.inputs and version.inputs[-1].variadic and not all(given):
        missing = list(given).index(False)
        raise ValueError(f"{version.inputs[-1].name} must all be given; input {missing} was not given")


def finish(values: abc.Sequence[Value | None]) -> list[Any]:
    """Return all values dense, copied in one call. Sequences keep the arrays they refer to and get copies of views."""
    if isinstance(values, Consecutive) or _LAZY.issuperset(map(type, values)):
        return dense(values)  # type: ignore[arg-type]
    waiting = [_lazy_items(value) for value in values]
    with_items = [items for items in waiting if items]
    # One sequence stays as it is: the parts of a large split are made when they are read.
    arrays = iter(dense(with_items[0] if len(with_items) == 1 else list(chain.from_iterable(with_items))))
    return [_finished(value, arrays) if items else value for value, items in zip(values, waiting, strict=True)]


def _lazy_items(value: Value | None) -> abc.Sequence[Any]:
    """Return what of a value has to be copied."""
    if isinstance(value, Sequence):
        items = items_of(value)
        if isinstance(items, Consecutive):
            return items
        # Most sequences have no views. This is the fastest way to see that.
        return [] if _LAZY.isdisjoint(map(type, items)) else [item for item in items if type(item) in _LAZY]
    return [value] if type(value) in _LAZY else []


def _finished(value: Any, arrays: abc.Iterator[Any]) -> Any:
    """Return a value with its views replaced by arrays."""
    if not isinstance(value, Sequence):
        return next(arrays)
    items = items_of(value)
    if isinstance(items, Consecutive):
        return Sequence.of_items(list(islice(arrays, len(items))), value.dtype)
    return Sequence.of_items([next(arrays) if type(item) in _LAZY else item for item in items], value.dtype)


def _checked(version: Version, position: int, value: Any, bound: dict[str, tuple[str, str]]) -> Any:
    """Return an input as its kind requires, after a check of its element type.

    ``bound`` maps each type variable to the first input that has it and that input's type.
    """
    expected = version.input(position)
    if value is None or expected is None:
        return None
    argument = f"{expected.name}[{position}]" if expected.variadic else expected.name
    if expected.kind == "sequence":
        if isinstance(value, (list, tuple)) and not value:
            return value  # an empty sequence of onnx.reference, which has no type
        value = as_sequence(value)
        name = value.dtype
    else:
        if type(value) is not np.ndarray:
            value = _tensor(expected, argument, value)
            if expected.kind == "index" and not is_array(value):
                return value  # Python ints have no element type
        name = dtype_name(value.dtype)
    if name not in version.types[expected.types]:
        listed = ", ".join(sorted(version.types[expected.types]))
        raise TypeError(f"{argument} must have a type in {{{listed}}}; got {name}")
    if name == "string":
        if expected.kind == "sequence":
            for i, item in enumerate(value):
                check_text(item, f"{argument}[{i}]")
        else:
            check_text(value, argument)
    first, known = bound.setdefault(expected.types, (argument, name))
    if name != known:
        raise TypeError(f"{argument} must have the type of {first}, {known}; got {name}")
    return value


def _tensor(expected: Input, argument: str, value: Any) -> Any:
    """Return a tensor as an array or a view; an index may also be Python ints."""
    if expected.kind == "index":
        return as_array(value)
    if isinstance(value, (View, Joined)):
        return value
    library_of(value, argument)
    return plain_array(value)


def _names(entries: abc.Sequence[Input | Attribute]) -> str:
    return ", ".join(entry.name for entry in entries) or "none"
