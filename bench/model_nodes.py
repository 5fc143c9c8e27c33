"""The nodes of these operators in a model, and its parts, each as a model of its own, with the inputs of a run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from bench.model_files import ModelFile, is_ours, nodes_of
from bench.model_runs import Runs, alone, observe
from gpuslice.onnx import parts
from gpuslice.onnx.model import opset_of
from gpuslice.onnx.node import version_of


@dataclass(frozen=True)
class Piece:
    """A node or a part of a model as a model of its own, and its inputs in one run.

    Attributes
    ----------
    source : str
        Package, path in its wheel, and name of the first node.
    model : ModelProto
    feeds : dict of str to array or list of arrays
    """

    source: str
    model: ModelProto
    feeds: dict[str, Any]

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes, without constants."""
        return [node for node in self.model.graph.node if node.op_type != "Constant"]

    @property
    def opset(self) -> int:
        """The opset of the default domain."""
        return opset_of(self.model)

    @property
    def inputs(self) -> list[Any]:
        """The positional inputs of the only node."""
        return [self.feeds.get(name) for name in self.nodes[0].input]

    def with_constants(self, names: set[str]) -> "Piece":
        """Return the same piece with some inputs as initializers."""
        model = ModelProto()
        model.CopyFrom(self.model)
        del model.graph.input[:]
        model.graph.input.extend(entry for entry in self.model.graph.input if entry.name not in names)
        model.graph.initializer.extend(numpy_helper.from_array(self.feeds[name], name) for name in names)
        return Piece(self.source, model, {name: value for name, value in self.feeds.items() if name not in names})

    def key(self) -> tuple[Any, ...]:
        """Return what makes it distinct: the nodes without their names, shapes and types, and the bounds' values."""
        numbers: dict[str, int] = {}

        def numbered(names: Any) -> tuple[Any, ...]:
            return tuple([name and numbers.setdefault(name, len(numbers)) for name in names])

        nodes = [
            (
                node.op_type,
                numbered(node.input),
                numbered(node.output),
                *[one.SerializeToString() for one in node.attribute],
            )
            for node in self.model.graph.node
        ]
        constants = [
            (numbers.get(one.name), numpy_helper.to_array(one).tobytes()) for one in self.model.graph.initializer
        ]
        bounds = bounds_of(self.model)
        given = [(numbers.get(name), *_kind(value, name in bounds)) for name, value in self.feeds.items()]
        return self.opset, tuple(nodes), tuple(constants), tuple(given)


class Pieces(NamedTuple):
    """What of a model can run alone.

    Attributes
    ----------
    nodes, parts : list of Piece
        Each with all inputs that differ in more than items.
    reached : int
        How many nodes of these operators have run.
    """

    nodes: list[Piece]
    parts: list[Piece]
    reached: int


def pieces(file: ModelFile) -> Pieces:
    """Return the nodes of these operators in a model's runs, and its parts, as pieces."""
    models = [(part, False) for part in parts(file.model)]
    reached: dict[bytes, ModelProto] = {}
    found: dict[Any, tuple[Piece, bool]] = {}
    for feeds in file.runs:
        runs = observe(file.model, feeds)
        for node, _ in runs:
            text = node.SerializeToString()
            if is_ours(node) and text not in reached:
                reached[text] = alone(node, file.model)
                models.append((reached[text], True))
        for number, (model, is_node) in enumerate(models):
            bounds = bounds_of(model)
            for values in _feeds_of(model, runs):
                key = number, *[_kind(value, name in bounds) for name, value in values.items()]
                if key not in found:
                    found[key] = _piece(f"{file.package}, {file.path}", model, values), is_node
    nodes, whole = ([piece for piece, is_node in found.values() if is_node == wanted] for wanted in (True, False))
    return Pieces(nodes, whole, sum(node.SerializeToString() in reached for node in nodes_of(file.model.graph)))


def _feeds_of(part: ModelProto, runs: Runs) -> Iterator[dict[str, Any]]:
    """Yield the inputs of a part by name, for each time that all its nodes have run."""
    names = [entry.name for entry in part.graph.input]
    texts = [node.SerializeToString() for node in part.graph.node if node.op_type != "Constant"]
    by_node: dict[bytes, Runs] = {text: [] for text in texts}
    for node, inputs in runs:
        by_node.get(node.SerializeToString(), []).append((node, inputs))
    for turn in zip(*by_node.values(), strict=False):
        values = {name: value for node, inputs in turn for name, value in zip(node.input, inputs, strict=False)}
        yield {name: values[name] for name in names}


def _piece(title: str, model: ModelProto, feeds: dict[str, Any]) -> Piece:
    """Return a piece whose inputs have the types of the feeds, since not all of them can be inferred."""
    typed = ModelProto()
    typed.CopyFrom(model)
    del typed.graph.input[:]
    typed.graph.input.extend(_declared(name, value) for name, value in feeds.items())
    piece = Piece(title, typed, feeds)
    return replace(piece, source=f"{title}, {piece.nodes[0].name}")


def _declared(name: str, value: Any) -> ValueInfoProto:
    """Return the declaration of a tensor, or of a sequence of tensors, with any shape."""
    first = value[0] if isinstance(value, list) else value
    kind = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(first.dtype), None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(kind) if isinstance(value, list) else kind)


def bounds_of(model: ModelProto) -> set[str]:
    """Return the inputs of a model that say what its nodes do."""
    versions = [(node, version_of(node, opset_of(model))) for node in model.graph.node if is_ours(node)]
    read = {node.input[i] for node, version in versions for i in version.bounds(len(node.input))}
    return read & {entry.name for entry in model.graph.input}


def _kind(value: Any, with_items: bool) -> tuple[Any, ...]:
    """Return the shape and type of a tensor or of a sequence, and the items of bounds."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple([_kind(item, False) for item in value])
    return value.shape, value.dtype.str, value.tobytes() if with_items else b""
