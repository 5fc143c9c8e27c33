"""``gpuslice op``: one operator version. The words of the command line become its inputs and attributes."""

from collections import abc
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpuslice.cli.arguments import are_ints, ints, split_word
from gpuslice.cli.copies import Copies
from gpuslice.cli.operator_help import argument_names, index_value, named_version, takes_one_int
from gpuslice.cli.reading import read_array, read_arrays
from gpuslice.cli.replacing import check_target
from gpuslice.cli.results import cells_of, named_arrays
from gpuslice.cli.text import show
from gpuslice.cli.writing import write_array, write_arrays
from gpuslice.dtypes import dtype_name
from gpuslice.engine import View, indexed
from gpuslice.errors import error_prefix
from gpuslice.libraries import Array, is_array
from gpuslice.onnx.evaluate import Values, evaluate
from gpuslice.sequence import Sequence
from gpuslice.versions import Version

# More arrays than this are printed as NumPy prints an array of more items: the first and the last ones.
_MOST_PRINTED, _EDGE = 1000, 3


def run_operator_command(name: str, words: abc.Sequence[str], outputs: int | None, output: str | None) -> None:
    """Run an operator version on files, and write or print its outputs.

    Parameters
    ----------
    name : str
        Operator and version, such as "Slice-13".
    words : sequence of str
        Inputs and attributes, each as NAME=VALUE. The element type may follow the name, as in ``data:bfloat16``.
    outputs : int, optional
        The number of outputs of a Split without sizes.
    output : str, optional
        Path of an .npy or .npz file. Default: print.
    """
    version = named_version(name)
    form = f"arguments must be NAME=VALUE; the names are {', '.join(argument_names(version))}"
    pairs = [split_word(word, form) for word in words]
    with error_prefix(version.name):
        read = _Words.of(version, pairs)
    if output is not None:
        _check_output(output, several=False)
        check_target(output)
    # Errors of a file have no prefix: they are not the operator's.
    inputs = {word: value() if callable(value) else value for word, value in read.inputs.items()}
    with error_prefix(version.name):
        results = _evaluate(version, inputs, read.attributes, outputs)
    if output is not None:
        _check_output(output, len(results) > 1 or isinstance(results[0], Sequence))
    copies = Copies(version.name)
    label = "output_{}" if len(results) > 1 else "output"
    named = named_arrays((label.format(i), value) for i, value in enumerate(results))
    if output is None and not named:
        show(f"output: an empty sequence of {results[0].dtype}")
    elif output is None:
        _print(named, copies)
    elif output.endswith(".npz"):
        write_arrays(output, named, copies)
    else:
        write_array(output, results[0], copies)


@dataclass
class _Words:
    """The arguments of a command.

    Attributes
    ----------
    inputs : dict
        Ints, or functions that read a file.
    attributes : dict
    """

    inputs: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, int | list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, version: Version, pairs: abc.Iterable[tuple[str, str]]) -> "_Words":
        """Return the names and values of a command as its inputs and attributes."""
        read = cls()
        for word, text in pairs:
            read._add(version, word, text)
        return read

    def _add(self, version: Version, word: str, text: str) -> None:
        name, _, dtype = word.partition(":")
        if name in self.inputs or name in self.attributes:
            raise ValueError(f"{name} must be given once; got it twice")
        expected = {entry.name: entry for entry in version.inputs}.get(name)
        kinds = {entry.name: entry.kind for entry in version.attributes}
        several = expected is not None and (expected.kind == "sequence" or expected.variadic)
        if dtype and are_ints(text) and not (several and not text):
            raise ValueError(f"{name} must be a file if it has an element type; got {text!r}")
        # Split-1 has an attribute and an input named split; a file can only be the input.
        if name in kinds and (are_ints(text) or expected is None):
            self.attributes[name] = _attribute(name, text, kinds[name])
        elif expected is None:
            known = ", ".join(argument_names(version))
            raise ValueError(f"there is no input or attribute {name!r}; there are {known}")
        elif expected.kind == "index" and are_ints(text):
            # For SplitToSequence split=4 is a scalar, split=4, is not. A position is nothing else.
            scalar = takes_one_int(version, name) and (name == "position" or "," not in text)
            self.inputs[name] = ints(name, text, scalar)
        elif expected.kind == "index" and not Path(text).exists():
            raise ValueError(f"{name} must be {index_value(version, name)}; got {text!r}, and there is no such file")
        elif are_ints(text) and text and not several and not Path(text).exists():
            raise ValueError(f"{name} must be a file; got {text!r}")
        else:
            self.inputs[name] = partial(read_arrays if several else read_array, text, dtype or None)


def _attribute(name: str, text: str, kind: str) -> int | list[int]:
    if kind == "type" and not are_ints(text):
        raise ValueError(f"{name} must be the number of an ONNX element type, such as 1 for float32; got {text!r}")
    return ints(name, text, kind != "ints")


def _evaluate(version: Version, inputs: dict[str, Any], attributes: dict[str, Any], outputs: int | None) -> Values:
    """Return the outputs, not yet copied."""
    values = [inputs.get(entry.name) for entry in version.inputs]
    if version.inputs and version.inputs[-1].variadic:
        values[-1:] = inputs.get(version.inputs[-1].name, [])
    while values and values[-1] is None:
        values.pop()
    return evaluate(version, values, *_count_outputs(version, inputs.get("split"), attributes, outputs))


def _count_outputs(
    version: Version, sizes: Any, attributes: dict[str, Any], outputs: int | None
) -> tuple[dict[str, Any], int]:
    """Return the attributes and the number of outputs. For Split-18 that number is an attribute too."""
    sizes = attributes.get("split") if sizes is None else sizes
    has_attribute = any(entry.name == "num_outputs" for entry in version.attributes)
    if outputs is not None:
        if has_attribute and sizes is None:
            attributes = {"num_outputs": outputs} | attributes
        return attributes, outputs
    if not version.many_outputs:
        return attributes, 1
    if "num_outputs" in attributes:
        return attributes, max(1, int(attributes["num_outputs"]))
    if sizes is None:
        names = "split, num_outputs or --outputs" if has_attribute else "split or --outputs"
        raise ValueError(f"{names} must be given, for the number of outputs")
    return attributes, max(1, int(sizes.size) if is_array(sizes) else len(sizes))


def _check_output(path: str, several: bool) -> None:
    if not path.endswith(".npz") and (several or not path.endswith(".npy")):
        allowed = "an .npz file, since there are several arrays" if several else "an .npz file or an .npy file"
        raise ValueError(f"{path!r}: must be {allowed}")


def _print(named: dict[str, Any], copies: Copies) -> None:
    shown = [
        f"{label}: {cells_of(value)[0]} {dtype_name(value.dtype)}\n{_shown(value, copies)}"
        for label, value in _edges(named)
    ]
    if len(shown) < len(named):
        shown.insert(_EDGE, f"... {len(named) - len(shown)} more ...")
    if shown:
        show("\n".join(shown))


def _shown(value: Any, copies: Copies) -> Array:
    """Return what is printed of a value. NumPy prints a few items of a large array, so a view need not be copied."""
    return indexed(value) if isinstance(value, View) else copies.fresh([value])[0]


def _edges(named: dict[str, Any]) -> list[tuple[str, Any]]:
    items = list(named.items())
    return items if len(items) <= _MOST_PRINTED else items[:_EDGE] + items[-_EDGE:]
