"""One operator from words: ``gpuslice op``'s names and values become inputs and attributes of a version."""

import re
from functools import partial
from typing import Any

from gpuslice.arrays import is_array
from gpuslice.errors import speaking_as
from gpuslice.files import read_array, read_arrays
from gpuslice.onnx.evaluate import evaluate, finish
from gpuslice.onnx.schemas import VERSIONS, Input, Version, find_version

_INTS = re.compile(r"-?\d+(,-?\d+)*,?|")


def run_operator(name: str, arguments: list[tuple[str, str]], outputs: int | None = None) -> list[Any]:
    """Run an operator version on files.

    Parameters
    ----------
    name : str
        Operator and version, such as "Slice-13".
    arguments : list of (str, str)
        Names of inputs (perhaps with a dtype, ``data:bfloat16``) and attributes, and what was written for them.
    outputs : int, optional
        How many outputs the node has, where sizes do not say it.

    Returns
    -------
    list of array or Sequence
    """
    version = _version(name)
    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    with speaking_as(version.name):
        for word, text in arguments:
            _read(version, word, text, inputs, attributes)
    # What is wrong with a file is not the operator's to say.
    inputs = {word: value() if callable(value) else value for word, value in inputs.items()}
    with speaking_as(version.name):
        values = [inputs.get(entry.name) for entry in version.inputs]
        if version.inputs and version.inputs[-1].variadic:
            values[-1:] = inputs.get(version.inputs[-1].name, [])
        while values and values[-1] is None:
            values.pop()
        count = _count_outputs(version, inputs, attributes) if outputs is None else outputs
        return finish(evaluate(version, values, attributes, count))


def _version(name: str) -> Version:
    operator, _, since = name.rpartition("-")
    if not since.isdecimal():
        raise ValueError(f"{name}: must be an operator and a version, such as Slice-13")
    version = find_version(operator, int(since))
    if version.since != int(since):
        versions = ", ".join(str(entry.since) for entry in VERSIONS if entry.operator == operator)
        raise ValueError(f"{name}: no such version; {operator} has {versions}")
    return version


def _read(version: Version, word: str, text: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Put what was written for an argument where it belongs: ints, or for an input a function that reads its files."""
    name, _, dtype = word.partition(":")
    if name in inputs or name in attributes:
        raise ValueError(f"{name} must be given once; got it twice")
    is_ints = _INTS.fullmatch(text) is not None
    if dtype and is_ints:
        raise ValueError(f"{name} must be a file where a dtype is given; got {text!r}")
    expected = {entry.name: entry for entry in version.inputs}.get(name)
    kinds = {entry.name: entry.kind for entry in version.attributes}
    # Split-1 has both an attribute and an input called split; a file can only be the input.
    if name in kinds and (is_ints or expected is None):
        attributes[name] = _ints(name, text, kinds[name] == "int")
    elif expected is None:
        names = dict.fromkeys([entry.name for entry in version.inputs] + list(kinds))
        raise ValueError(f"no input or attribute is called {name!r}; there are {', '.join(names)}")
    elif expected.kind == "index" and is_ints:
        inputs[name] = _ints(name, text, _is_scalar(version, expected, text))
    elif expected.kind == "sequence" or expected.variadic:
        inputs[name] = partial(read_arrays, text, dtype or None)
    else:
        inputs[name] = partial(read_array, text, dtype or None)


def _ints(name: str, text: str, scalar: bool) -> int | list[int]:
    if not _INTS.fullmatch(text):
        raise ValueError(f"{name} must be ints separated by commas; got {text!r}")
    values = [int(word) for word in text.split(",") if word]
    if scalar and len(values) != 1:
        raise ValueError(f"{name} must be one int; got {text!r}")
    return values[0] if scalar else values


def _is_scalar(version: Version, expected: Input, text: str) -> bool:
    """Tell whether ints for an index input are a scalar: ``split=4`` of SplitToSequence is, ``split=4,`` is not."""
    return expected.name == "position" or (version.operator == "SplitToSequence" and "," not in text)


def _count_outputs(version: Version, inputs: dict[str, Any], attributes: dict[str, Any]) -> int:
    if not version.many_outputs:
        return 1
    if "num_outputs" in attributes:
        return max(1, int(attributes["num_outputs"]))
    sizes = inputs.get("split", attributes.get("split"))
    if sizes is None:
        raise ValueError("either sizes or --outputs must be given: nothing else says how many outputs there are")
    return max(1, int(sizes.size) if is_array(sizes) else len(sizes))
