"""Graph: a model made of these operators, plus Constant and Identity.

Views go through the graph, so a chain of slices and splits copies nothing. All outputs are copied together at the end.
"""

from collections import abc
from typing import Any, TypeAlias, TypeVar

from onnx import ModelProto, NodeProto

from gpuslice.engine import View
from gpuslice.errors import describe, error_prefix, listed
from gpuslice.onnx.constants import constant_value, first_foreign, placed
from gpuslice.onnx.declared import Declared
from gpuslice.onnx.evaluate import Value
from gpuslice.onnx.graph_node import GraphNode, check_names
from gpuslice.onnx.known_runs import KnownRuns
from gpuslice.onnx.model import check_model, check_supported, name_of, opset_of
from gpuslice.onnx.tensors import sparse_value, tensor_value

# Called with the names of node, operator and output, and the value.
Observer: TypeAlias = abc.Callable[[str, str, str, Any], None]
T = TypeVar("T")


class Graph:
    """A model, checked and ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        A model of the operators of this package, Constant and Identity, without subgraphs and functions.

    Attributes
    ----------
    declared : dict of str to Declared
        All inputs by name, in the model's order.
    inputs : dict of str to Declared
        The inputs without an initializer. They must be given.
    outputs : dict of str to Declared

    Raises
    ------
    ValueError
        The model has operators that are not supported (the message counts them), attributes or inputs that a
        version does not allow, or names that are used before they have a value.
    TypeError
        ``model`` is not a ModelProto.
    """

    declared: dict[str, Declared]
    inputs: dict[str, Declared]
    outputs: dict[str, Declared]

    def __init__(self, model: ModelProto) -> None:
        check_model(model)
        check_supported(model)
        graph = model.graph
        self.declared = _by_name("input", ((entry.name, Declared.of(entry)) for entry in graph.input))
        dense = [(tensor.name, tensor_value(tensor)) for tensor in graph.initializer]
        sparse = [(tensor.values.name, sparse_value(tensor)) for tensor in graph.sparse_initializer]
        self._constants = _by_name("initializer", dense + sparse)
        self.inputs = {name: entry for name, entry in self.declared.items() if name not in self._constants}
        self._names = [entry.name for entry in graph.output]  # an output may be listed twice
        self._results = [Declared.of(entry) for entry in graph.output]
        self.outputs = dict(zip(self._names, self._results, strict=True))
        self._nodes: list[GraphNode] = []
        self._read_nodes(graph.node, opset_of(model))
        self._views = {name: View.of(array) for name, array in self._constants.items()}
        self._moved = self._names_moved()
        self._unread = self._names_unread()
        self._known = KnownRuns(_names_read(self._nodes), self._constants)

    def run(self, inputs: abc.Mapping[str, Any], *, observe: Observer | None = None) -> dict[str, Any]:
        """Run the graph.

        Parameters
        ----------
        inputs : mapping of str to array or sequence of arrays
            Arrays of any library. A Python number is a tensor without axes, of the declared type. An input that has an
            initializer may be omitted.
        observe : callable, optional
            Called as ``observe(node, operator, output, value)`` for each output of each node, before anything is
            copied. ``value`` has a shape, dtype and device, or is a sequence of such values.

        Returns
        -------
        dict of str to array or Sequence
            By output name: fresh C-contiguous arrays, each in the library and on the device of the input it comes from.
            Constants join the first input that is not a NumPy array.

        Raises
        ------
        ValueError, TypeError, IndexError
            Inputs are missing, unknown, or not as the model declares them, or the operator of a node raises.
        """
        return dict(zip(self._names, self._run(inputs, observe), strict=True))

    def run_in_order(self, inputs: abc.Mapping[str, Any], *, observe: Observer | None = None) -> list[tuple[str, Any]]:
        """Return what `run` does as pairs in the model's order. An output that it lists twice is there twice."""
        return list(zip(self._names, self._run(inputs, observe), strict=True))

    def _run(self, inputs: abc.Mapping[str, Any], observe: Observer | None) -> list[Any]:
        if observe is not None and not callable(observe):
            raise TypeError(f"observe must be callable or None; got {describe(observe)}")
        key = self._known.key(inputs.items()) if observe is None and type(inputs) is dict else None
        known = self._known.run(key, inputs)
        if known is not None:
            return known
        return self._known.finish(key, inputs, [value for _, value in self.evaluate(inputs, observe=observe)])

    def evaluate(self, inputs: abc.Mapping[str, Any], *, observe: Observer | None = None) -> list[tuple[str, Value]]:
        """Return the outputs in the model's order as they are before anything is copied."""
        values = self._bind(inputs)
        for node, unread in zip(self._nodes, self._unread, strict=True):
            values |= self._run_node(node, values, inputs, observe)
            for name in unread:
                del values[name]
        for name, declared in zip(self._names, self._results, strict=True):
            declared.check_output(values[name], name)
        return [(name, values[name]) for name in self._names]

    def _run_node(
        self, node: GraphNode, values: abc.Mapping[str, Any], inputs: abc.Mapping[str, Any], observe: Observer | None
    ) -> dict[str, Any]:
        """Return the outputs of a node by name."""
        results = node.run([self._input(node, i, name, values, inputs) for i, name in enumerate(node.inputs)])
        named = {name: result for name, result in zip(node.outputs, results, strict=True) if name}
        if observe is not None:
            for name, result in named.items():
                observe(node.name, node.operator, name, result)
        return named

    def _read_nodes(self, nodes: abc.Iterable[NodeProto], opset: int) -> None:
        known = {*self.declared, *self._constants}
        for position, node in enumerate(nodes):
            name = name_of(node, position)
            with error_prefix(f"{node.op_type} (node {name})"):
                check_names(node, known)
                if node.op_type == "Constant":
                    self._constants[node.output[0]] = constant_value(node, opset)
            if node.op_type != "Constant":
                self._nodes.append(GraphNode.of(node, name, opset))
        for name in self.outputs:
            if name not in known:
                raise ValueError(f"graph output {name!r} is not the output of any node, input or initializer")

    def _input(
        self, node: GraphNode, position: int, name: str, values: abc.Mapping[str, Any], inputs: abc.Mapping[str, Any]
    ) -> Any:
        """Return an input of a node. A constant that is read as bounds is read on the host, even if it is also data."""
        if not name:
            return None
        entry = node.input(position)
        if entry and entry.kind == "index" and name in self._constants and name not in inputs:
            return self._constants[name]
        return values[name]

    def _names_moved(self) -> set[str]:
        """Return the names of values whose items may reach an output. Bounds and positions stay on the host."""
        moved = set(self.outputs)
        for node in reversed(self._nodes):
            for position, name in enumerate(node.inputs):
                entry = node.input(position)
                if (entry.kind != "index") if entry else not moved.isdisjoint(node.outputs):
                    moved.add(name)
        return moved

    def _names_unread(self) -> list[list[str]]:
        """Return for each node the values that nobody reads after it."""
        read, unread = set(self.outputs), []
        for node in reversed(self._nodes):
            last = {name for name in (*node.inputs, *node.outputs) if name} - read
            unread.append(list(last))
            read |= last
        return unread[::-1]

    def _bind(self, inputs: abc.Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of inputs and constants by name, as views."""
        if not isinstance(inputs, abc.Mapping):
            raise TypeError(f"inputs must be a mapping from names to values; got {describe(inputs)}")
        for name in inputs:
            if name not in self.declared:
                raise ValueError(f"the model has no input {name!r}; it has {listed(self.inputs) or 'none'}")
        missing = [name for name in self.inputs if name not in inputs]
        if missing:
            verb = "was" if len(missing) == 1 else "were"
            raise ValueError(f"input {listed(map(repr, missing))} {verb} not given")
        given = {name: self.declared[name].check(value, name) for name, value in inputs.items()}
        like = first_foreign(value for name, value in given.items() if name in self._moved)
        if like is None:
            return self._views | given
        moved = [(name, array) for name, array in self._constants.items() if name in self._moved]
        return self._views | {name: View.of(placed(array, like, name)) for name, array in moved} | given


def _by_name(kind: str, entries: abc.Iterable[tuple[str, T]]) -> dict[str, T]:
    named: dict[str, T] = {}
    for name, entry in entries:
        if name in named:
            raise ValueError(f"graph has two {kind}s with the name {name!r}")
        named[name] = entry
    return named


def _names_read(nodes: abc.Sequence[GraphNode]) -> frozenset[str]:
    """Return the names of values whose items say what a node does, and of those that they are computed from."""
    read: set[str] = set()
    for node in reversed(nodes):
        for position, name in enumerate(node.inputs):
            entry = node.input(position)
            if (entry is not None and entry.is_bound) or not read.isdisjoint(node.outputs):
                read.add(name)
    return frozenset(read)
