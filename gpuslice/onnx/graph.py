"""Graph: a model made of these operators, plus Constant and Identity, on arrays.

(array, region) pairs go through the graph, so a chain of slices and splits costs no copy; all outputs are made dense
together at the end, in one launch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import array_api_compat
import numpy as np
from onnx import ModelProto, NodeProto

from gpuslice.arrays import Array, dtype_name
from gpuslice.engine import View
from gpuslice.errors import speaking_as
from gpuslice.onnx.constants import constant_value, tensor_value
from gpuslice.onnx.evaluate import apply, check_attributes, check_input_count, check_outputs, finish
from gpuslice.onnx.model import opset_of, unsupported
from gpuslice.onnx.node import read_attributes, version_of
from gpuslice.onnx.schemas import Version
from gpuslice.onnx.values import Declared
from gpuslice.sequence import Sequence

Observer = Callable[[str, str, str, Any], None]
T = TypeVar("T")


@dataclass(frozen=True)
class _Step:
    """A node ready to run; ``version`` is None for Identity."""

    node: str
    version: Version | None
    attributes: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def operator(self) -> str:
        return self.version.name if self.version else "Identity"

    @property
    def label(self) -> str:
        return f"{self.operator} (node {self.node})"


class Graph:
    """A model, checked and ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        Of the operators of this package, Constant and Identity; without subgraphs and functions.

    Attributes
    ----------
    declared : dict of str to Declared
        All inputs by name, in the model's order.
    inputs : dict of str to Declared
        Those that must be given: the ones without an initializer.
    outputs : dict of str to Declared

    Raises
    ------
    ValueError
        Operators that are not supported (all of them are listed), attributes or inputs that a version does not allow,
        or names that are used before they are given.
    """

    def __init__(self, model: ModelProto) -> None:
        if not isinstance(model, ModelProto):
            raise TypeError(f"model must be an onnx.ModelProto; got {type(model).__name__}")
        problems = unsupported(model)
        if problems:
            raise ValueError("model has nodes that gpuslice cannot run: " + "; ".join(problems))
        graph, opset = model.graph, opset_of(model)
        self.declared = _by_name("input", ((entry.name, Declared.of(entry)) for entry in graph.input))
        self._constants = _by_name("initializer", ((tensor.name, tensor_value(tensor)) for tensor in graph.initializer))
        self.inputs = {name: entry for name, entry in self.declared.items() if name not in self._constants}
        self.outputs = _by_name("output", ((entry.name, Declared.of(entry)) for entry in graph.output))
        self._steps: list[_Step] = []
        known = {*self.declared, *self._constants}
        for position, node in enumerate(graph.node):
            name = node.name or f"#{position}"
            with speaking_as(f"{node.op_type} (node {name})"):
                _check_names(node, known)
            if node.op_type == "Constant":
                with speaking_as(f"Constant (node {name})"):
                    self._constants[node.output[0]] = constant_value(node, opset)
            else:
                self._steps.append(_prepare(node, name, opset))
        for name in self.outputs:
            if name not in known:
                raise ValueError(f"graph output {name!r} is given by no node, input or initializer")
        self._moved = self._names_moved()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the graph.

        Parameters
        ----------
        inputs : mapping of str to array or sequence of arrays
            All of one library and device. An input that has an initializer may be left out.

        Returns
        -------
        dict of str to array or Sequence
            By output name; fresh C-contiguous arrays, in the library and on the device of the inputs.

        Raises
        ------
        ValueError, TypeError, IndexError
            Inputs that are missing, unknown, or not as the model declares them; whatever a node's operator raises.
        """
        outputs = self.propagate(inputs)
        return dict(zip(outputs, finish(list(outputs.values())), strict=True))

    def propagate(self, inputs: Mapping[str, Any], observe: Observer | None = None) -> dict[str, Any]:
        """Give the outputs by name as views, before `finish` copies them all.

        ``observe(node, operator, output, value)`` is called for each output of each node; ``value`` has a shape, dtype
        and device, or is a sequence of such.
        """
        values = self._bind(inputs)
        for step in self._steps:
            results = given = [
                self._read_by(step, position, name, values, inputs) for position, name in enumerate(step.inputs)
            ]
            if step.version is not None:
                with speaking_as(step.label):
                    results = apply(step.version, given, step.attributes, len(step.outputs))
            for name, result in zip(step.outputs, results, strict=True):
                if name:
                    values[name] = result
                    if observe is not None:
                        observe(step.node, step.operator, name, result)
        for name, declared in self.outputs.items():
            declared.check_output(values[name], name)
        return {name: values[name] for name in self.outputs}

    def _read_by(
        self, step: _Step, position: int, name: str, values: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> Any:
        """Give an input of a node; a constant that is read as bounds is read on the host, also where it is data too."""
        if not name:
            return None
        entry = step.version.input(position) if step.version else None
        if entry and entry.kind == "index" and name in self._constants and name not in inputs:
            return self._constants[name]
        return values[name]

    def _names_moved(self) -> set[str]:
        """Name the values whose items may reach an output, unlike bounds and positions, which stay on the host."""
        moved = set(self.outputs)
        for step in reversed(self._steps):
            for position, name in enumerate(step.inputs):
                entry = step.version.input(position) if step.version else None
                if (entry.kind != "index") if entry else not moved.isdisjoint(step.outputs):
                    moved.add(name)
        return moved

    def _bind(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(inputs, Mapping):
            raise TypeError(f"inputs must be a mapping from names to values; got {type(inputs).__name__}")
        for name in inputs:
            if name not in self.declared:
                raise ValueError(f"the model has no input {name!r}; it has {', '.join(self.inputs) or 'none'}")
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            raise ValueError(f"input {', '.join(map(repr, missing))} was not given")
        given = {name: self.declared[name].check(value, name) for name, value in inputs.items()}
        like = _first_view(value for name, value in given.items() if name in self._moved)
        constants = {
            name: View.of(_placed(array, like, name) if name in self._moved else array)
            for name, array in self._constants.items()
        }
        return constants | given


def _prepare(node: NodeProto, name: str, opset: int) -> _Step:
    given, outputs = tuple(node.input), tuple(node.output)
    while given and not given[-1]:
        given = given[:-1]
    version = None if node.op_type == "Identity" else version_of(node, opset)
    attributes: dict[str, Any] = {}
    step = _Step(name, version, attributes, given, outputs)
    with speaking_as(step.label):
        attributes |= read_attributes(node)
        if version is None:
            if len(given) != 1 or len(outputs) != 1 or attributes:
                raise ValueError("must have one input, one output and no attributes")
            return step
        check_attributes(version, attributes)
        check_outputs(version, len(outputs))
        check_input_count(version, [bool(entry) for entry in given])
    return step


def _check_names(node: NodeProto, known: set[str]) -> None:
    """Refuse inputs without a value and outputs that have one already; add the outputs to ``known``."""
    for name in node.input:
        if name and name not in known:
            raise ValueError(f"input {name!r} is given by no input, initializer or earlier node")
    for name in filter(None, node.output):
        if name in known:
            raise ValueError(f"output {name!r} already has a value")
        known.add(name)


def _by_name(kind: str, entries: Iterable[tuple[str, T]]) -> dict[str, T]:
    named: dict[str, T] = {}
    for name, entry in entries:
        if name in named:
            raise ValueError(f"graph has two of {kind} {name!r}")
        named[name] = entry
    return named


def _first_view(values: Iterable[Any]) -> View | None:
    """Give the first tensor that is not NumPy's, which the constants have to join; None where all are."""
    for value in values:
        for item in value if isinstance(value, Sequence) else [value]:
            view: View = item
            if not isinstance(view.array, np.ndarray):
                return view
    return None


def _placed(array: Array, like: View | None, name: str) -> Array:
    """Give a constant in the library and on the device of the graph's inputs, or TypeError where it can't be there."""
    if like is None:
        return array
    expected = dtype_name(array.dtype)
    try:
        placed = like.xp.asarray(array, device=array_api_compat.device(like.array))
    except TypeError:
        placed = None
    if placed is None or dtype_name(placed.dtype) != expected:
        raise TypeError(f"constant {name!r} of {expected} cannot be held by arrays of {like.xp.__name__}")
    return placed
