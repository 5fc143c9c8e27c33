"""What the nodes of a graph can read: names, constants and types, those of the graphs around it included."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from gpuslice.onnx.constants import constant_value
from gpuslice.onnx.declared import Declared
from gpuslice.onnx.inference import bodies
from gpuslice.onnx.model import reason_against

ConstantProto: TypeAlias = TensorProto | SparseTensorProto | NodeProto


@dataclass(frozen=True)
class Scope:
    """What the nodes of a graph can read.

    Attributes
    ----------
    names : set of str
        Names that have a value before the first node.
    types : dict of str to ValueInfoProto
    constants : dict of str to TensorProto, SparseTensorProto or NodeProto
        Initializers, and Constant nodes by their output.
    inputs : set of str
        Names of graph inputs. Those of them that are constants have a default.
    """

    names: frozenset[str] = frozenset()
    types: dict[str, ValueInfoProto] = field(default_factory=dict)
    constants: dict[str, ConstantProto] = field(default_factory=dict)
    inputs: frozenset[str] = frozenset()

    def inside(self, graph: GraphProto, typed: GraphProto, opset: int, functions: set[str]) -> "Scope":
        """Return the scope of a graph in this one. ``typed`` is the graph with the types that are inferred."""
        inputs = frozenset(entry.name for entry in graph.input)
        own: dict[str, ConstantProto] = {tensor.name: tensor for tensor in graph.initializer}
        own |= {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        made = {name for node in graph.node for name in node.output}
        # A graph may hide names of those around it.
        names = (self.names - made) | inputs | own.keys()
        own |= {node.output[0]: node for node in graph.node if is_constant(node, opset, functions)}
        kept = {name: value for name, value in self.constants.items() if name not in inputs | made}
        entries = [entry for known in (typed, graph) for entry in (*known.value_info, *known.output, *known.input)]
        types = {entry.name: entry for entry in entries if entry.type.WhichOneof("value")}
        return Scope(names, self.types | types, kept | own, (self.inputs - made - own.keys()) | inputs)

    def after(self, graph: GraphProto) -> "Scope":
        """Return what graphs inside a graph of this scope can read."""
        return replace(self, names=self.names.union(*(node.output for node in graph.node)))

    def declaration(self, name: str) -> ValueInfoProto:
        """Return the declaration of a value, without a type if that is unknown or one that `Graph` does not have."""
        entry = self.types.get(name)
        try:
            if entry is not None:
                Declared.of(entry)
                return entry
        except (TypeError, ValueError):
            pass
        return ValueInfoProto(name=name)


def is_constant(node: NodeProto, opset: int, functions: set[str]) -> bool:
    """Return whether a node is a Constant whose value can be read."""
    if node.op_type != "Constant" or reason_against(node, opset, functions) is not None:
        return False
    try:
        constant_value(node, opset)
    except (TypeError, ValueError):
        return False
    return True


def names_read(node: NodeProto) -> dict[str, None]:
    """Return all names that a node reads, and those that its subgraphs do; some may be the subgraphs' own."""
    names, waiting = dict.fromkeys(node.input), bodies(node)
    while waiting:
        graph = waiting.pop()
        names |= dict.fromkeys(entry.name for entry in graph.output)
        for inner in graph.node:
            names |= dict.fromkeys(inner.input)
            waiting += bodies(inner)
    names.pop("", None)
    return names
