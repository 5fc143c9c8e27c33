"""``gpuslice op``: one operator version. The words of the command line become its inputs and attributes."""

import re
from collections import abc
from functools import partial
from typing import Any

from gpuslice.cli.files import read_array, read_arrays, write_array, write_arrays
from gpuslice.cli.results import cells_of, named_arrays, split_word
from gpuslice.dtypes import dtype_name
from gpuslice.errors import error_prefix
from gpuslice.libraries import is_array
from gpuslice.onnx.evaluate import evaluate, finish
from gpuslice.sequence import Sequence
from gpuslice.versions import VERSIONS, Input, Version, find_version

_INTS = re.compile(r"-?\d+(,-?\d+)*,?|")


def run_operator_command(name: str, words: abc.Sequence[str], outputs: int | None, output: str | None) -> None:
    """Run an operator version on files, and write or print its outputs.

    Parameters
    ----------
    name : str
        Operator and version, such as "Slice-13".
    words : sequence of str
        Inputs and attributes, each as NAME=VALUE.
    outputs : int, optional
        The number of outputs, if no sizes are given.
    output : str, optional
        Path of an .npy or .npz file. Default: print.
    """
    results = run_operator(name, [split_word(word) for word in words], outputs)
    several = len(results) > 1 or isinstance(results[0], Sequence)
    named = named_arrays((f"output_{i}" if len(results) > 1 else "output", value) for i, value in enumerate(results))
    if output is None:
        for label, array in named.items():
            print(f"{label}: {cells_of(array)[0]} {dtype_name(array.dtype)}\n{array}")
    elif output.endswith(".npz"):
        write_arrays(output, named)
    elif several or not output.endswith(".npy"):
        raise ValueError(f"{output!r}: must be an .npz file" + ("" if several else " or an .npy file"))
    else:
        write_array(output, results[0])


def run_operator(name: str, arguments: list[tuple[str, str]], outputs: int | None = None) -> list[Any]:
    """Return the outputs of an operator version on files.

    Parameters
    ----------
    name : str
        Operator and version, such as "Slice-13".
    arguments : list of (str, str)
        Names of inputs (an element type may follow, as in ``data:bfloat16``) and attributes, with their text.
    outputs : int, optional
        The number of outputs, if no sizes are given.

    Returns
    -------
    list of array or Sequence
    """
    version = _version(name)
    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    with error_prefix(version.name):
        for word, text in arguments:
            _read(version, word, text, inputs, attributes)
    # Errors of a file have no prefix: they are not the operator's.
    inputs = {word: value() if callable(value) else value for word, value in inputs.items()}
    with error_prefix(version.name):
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
        raise ValueError(f"{name}: must be an operator with its version, such as Slice-13")
    version = find_version(operator, int(since))
    if version.since != int(since):
        versions = ", ".join(str(entry.since) for entry in VERSIONS if entry.operator == operator)
        raise ValueError(f"{name}: {operator} has no such version; it has {versions}")
    return version


def _read(version: Version, word: str, text: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Add one argument to inputs or attributes: ints, or for an input from files a function that reads them."""
    name, _, dtype = word.partition(":")
    if name in inputs or name in attributes:
        raise ValueError(f"{name} must be given once; got it twice")
    is_ints = _INTS.fullmatch(text) is not None
    if dtype and is_ints:
        raise ValueError(f"{name} must be a file if it has an element type; got {text!r}")
    expected = {entry.name: entry for entry in version.inputs}.get(name)
    kinds = {entry.name: entry.kind for entry in version.attributes}
    # Split-1 has an attribute and an input named split; a file can only be the input.
    if name in kinds and (is_ints or expected is None):
        attributes[name] = _ints(name, text, kinds[name] != "ints")
    elif expected is None:
        names = dict.fromkeys([entry.name for entry in version.inputs] + list(kinds))
        raise ValueError(f"there is no input or attribute {name!r}; there are {', '.join(names)}")
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
    """Return whether ints for an index are a scalar: for SplitToSequence ``split=4`` is one, ``split=4,`` is not."""
    return expected.name == "position" or (version.operator == "SplitToSequence" and "," not in text)


def _count_outputs(version: Version, inputs: dict[str, Any], attributes: dict[str, Any]) -> int:
    if not version.many_outputs:
        return 1
    if "num_outputs" in attributes:
        return max(1, int(attributes["num_outputs"]))
    sizes = inputs.get("split", attributes.get("split"))
    if sizes is None:
        raise ValueError("sizes or --outputs must be given, for the number of outputs")
    return max(1, int(sizes.size) if is_array(sizes) else len(sizes))
