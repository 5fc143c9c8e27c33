"""parts: the sub-models of a model that `Graph` can run."""

from collections import abc

from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from gpuslice.errors import error_prefix
from gpuslice.onnx.graph_node import GraphNode, check_names
from gpuslice.onnx.inference import bodies, with_types
from gpuslice.onnx.model import check_model, functions_of, name_of, opset_of, reason_against
from gpuslice.onnx.node import DOMAINS
from gpuslice.onnx.partition import partition
from gpuslice.onnx.scope import Scope, names_read


def parts(model: ModelProto) -> list[ModelProto]:
    """Return the largest sub-models of a model that `Graph` can run.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    list of onnx.ModelProto
        By their first node; those of subgraphs follow. All names are those of the model. A part has the initializers
        and Constant nodes that it reads. Its other inputs are what it reads of the rest of the model, and its outputs
        are what the rest or the model's user reads. They are declared as in the model or, if it does not declare
        them, as onnx.shape_inference infers.

    Raises
    ------
    ValueError
        The model imports no opset of the default domain, or a name is used before it has a value, or has two.
    TypeError
        ``model`` is not a ModelProto.

    Notes
    -----
    Two nodes are in one part if one reads the other, or if both read one value that is not a constant; except if one
    also reads the other through a node that cannot run. So the parts and the other nodes can run one after the other. A
    part of Identity alone is none.
    """
    check_model(model)
    opset, functions = opset_of(model), functions_of(model)
    found: list[GraphProto] = []
    waiting = [(model.graph, with_types(model), Scope())]
    while waiting:
        graph, typed, outer = waiting.pop(0)
        scope = outer.inside(graph, typed, opset, functions)
        found += _Cut(graph, scope, opset, functions).parts()
        within = scope.after(graph)
        for node, same in zip(graph.node, typed.node, strict=True):
            waiting += [(*both, within) for both in zip(bodies(node), bodies(same), strict=True)]
    return [_as_model(part, model) for part in found]


class _Cut:
    """A graph, and what is known of it to cut parts out of it."""

    def __init__(self, graph: GraphProto, scope: Scope, opset: int, functions: set[str]) -> None:
        self.graph, self.scope, self.opset, self.functions = graph, scope, opset, functions
        self.reads = [names_read(node) for node in graph.node]
        self.readers: dict[str, list[int]] = {}
        for position, names in enumerate(self.reads):
            for name in names:
                self.readers.setdefault(name, []).append(position)
        self.results = {entry.name for entry in graph.output}

    def parts(self) -> abc.Iterator[GraphProto]:
        """Yield the parts, by their first node."""
        sources = self._sources()
        supported = {position for position, node in enumerate(self.graph.node) if self._can_run(node)}
        shared = [readers for name, readers in self.readers.items() if name not in self.scope.constants]
        for piece in partition(sources, supported, shared):
            if any(self.graph.node[position].op_type != "Identity" for position in piece):
                yield self._part(piece)

    def _sources(self) -> list[set[int]]:
        """Return for each node those that it reads, without constants; raise ValueError for names without a value."""
        known, producers, sources = set(self.scope.names), dict[str, int](), []
        for position, (node, names) in enumerate(zip(self.graph.node, self.reads, strict=True)):
            with error_prefix(f"{node.op_type} (node {name_of(node, position)})"):
                check_names(node, known)
            sources.append({producers[name] for name in names if name in producers})
            producers |= {name: position for name in node.output if name and name not in self.scope.constants}
        return sources

    def _can_run(self, node: NodeProto) -> bool:
        if node.op_type == "Constant" or reason_against(node, self.opset, self.functions) is not None:
            return False
        try:
            GraphNode.of(node, "", self.opset)
        except (TypeError, ValueError):
            return False
        return True

    def _part(self, piece: list[int]) -> GraphProto:
        nodes, scope, inside = [self.graph.node[position] for position in piece], self.scope, set(piece)
        made = dict.fromkeys(name for node in nodes for name in node.output if name)
        read = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
        constants = [scope.constants[name] for name in read if name in scope.constants]
        taken = [name for name in made if name in self.results or not inside.issuperset(self.readers.get(name, ()))]
        # Nobody reads the results of a part that the model does not need.
        taken = taken or [name for name in made if name not in self.readers]
        return GraphProto(
            name=self.graph.name or "part",
            node=[*(value for value in constants if isinstance(value, NodeProto)), *nodes],
            initializer=[value for value in constants if isinstance(value, TensorProto)],
            sparse_initializer=[value for value in constants if isinstance(value, SparseTensorProto)],
            input=[scope.declaration(name) for name in read if name not in scope.constants or name in scope.inputs],
            output=[scope.declaration(name) for name in taken],
        )


def _as_model(graph: GraphProto, model: ModelProto) -> ModelProto:
    imports = [entry for entry in model.opset_import if entry.domain in DOMAINS]
    return ModelProto(ir_version=model.ir_version, opset_import=imports, producer_name=model.producer_name, graph=graph)
