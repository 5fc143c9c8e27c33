"""A node of a graph, checked and ready to run."""

from collections import abc
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto

from gpuslice.errors import error_prefix
from gpuslice.onnx.evaluate import apply, check_attributes, check_input_count, check_outputs
from gpuslice.onnx.node import read_attributes, version_of
from gpuslice.versions import Input, Version


@dataclass(frozen=True)
class GraphNode:
    """A node ready to run.

    Attributes
    ----------
    name : str
        The node's name, or its position such as "#3".
    version : Version or None
        None for Identity.
    inputs, outputs : tuple of str
        Names of values; "" for one that is omitted.
    attributes : dict
    """

    name: str
    version: Version | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, node: NodeProto, name: str, opset: int) -> "GraphNode":
        """Return a node ready to run; raise ValueError if its version does not allow it."""
        inputs = tuple(node.input)
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        version = None if node.op_type == "Identity" else version_of(node, opset)
        ready = cls(name, version, inputs, tuple(node.output))
        with error_prefix(ready.label):
            ready.attributes.update(_checked(ready, read_attributes(node)))
        return ready

    @property
    def operator(self) -> str:
        """Operator and version, such as Slice-13."""
        return self.version.name if self.version else "Identity"

    @property
    def label(self) -> str:
        """The node as messages show it."""
        return f"{self.operator} (node {self.name})"

    def input(self, position: int) -> Input | None:
        """Return what the version says of an input; None for Identity."""
        return self.version.input(position) if self.version else None

    def run(self, inputs: list[Any]) -> abc.Sequence[Any]:
        """Return the outputs for the inputs, not yet copied."""
        if self.version is None:
            return inputs
        with error_prefix(self.label):
            return apply(self.version, inputs, self.attributes, len(self.outputs))


def check_names(node: NodeProto, known: set[str]) -> None:
    """Raise ValueError for inputs without a value and outputs that already have one; add the outputs to ``known``."""
    for name in node.input:
        if name and name not in known:
            raise ValueError(f"input {name!r} is not a graph input, an initializer or the output of an earlier node")
    for name in filter(None, node.output):
        if name in known:
            raise ValueError(f"output {name!r} already has a value")
        known.add(name)


def _checked(node: GraphNode, attributes: dict[str, Any]) -> dict[str, Any]:
    if node.version is None:
        if len(node.inputs) != 1 or len(node.outputs) != 1 or attributes:
            raise ValueError("must have one input, one output and no attributes")
        return {}
    checked = check_attributes(node.version, attributes)
    check_outputs(node.version, len(node.outputs))
    check_input_count(node.version, [bool(name) for name in node.inputs])
    return checked
