"""Runs a model, and shows the inputs of the nodes of these operators.

onnxruntime runs the model up to them. A node with a subgraph, such as a Loop, then runs on onnx.reference, which shows
the inputs of each node in it.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import op_one_hot
from onnx.reference.ops.op_identity import Identity

from bench.model_files import Feeds, is_ours, nodes_of
from gpuslice.onnx import reference_ops
from gpuslice.onnx.inference import bodies
from gpuslice.onnx.model import opset_of
from gpuslice.onnx.node import version_of
from gpuslice.onnx.scope import names_read

# Runs of nodes with their inputs, None for an omitted one.
Runs = list[tuple[NodeProto, list[Any]]]


def session(model: ModelProto) -> onnxruntime.InferenceSession:
    """Return onnxruntime's session of a model, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def observe(model: ModelProto, feeds: Feeds) -> Runs:
    """Run a model, and return the runs of these operators' nodes, and of Identity."""
    graph, opset = model.graph, opset_of(model)
    ours = [node for node in graph.node if is_ours(node) or node.op_type == "Identity"]
    holders = [node for node in graph.node if any(nodes_of(body) for body in bodies(node))]
    made = {name for node in graph.node for name in node.output} | {tensor.name for tensor in graph.initializer}
    wanted = sorted({name for node in (*ours, *holders) for name in names_read(node)} & made)
    shown = ModelProto()
    shown.CopyFrom(model)
    del shown.graph.output[:]
    shown.graph.output.extend(ValueInfoProto(name=name) for name in wanted)
    values = feeds | dict(zip(wanted, session(shown).run(wanted, feeds), strict=True))
    runs = [(node, [values.get(name) for name in node.input]) for node in ours]
    for node in holders:
        runs += _observe_inside(node, model, values)
    return [(node, [_usual(node, i, value, opset) for i, value in enumerate(inputs)]) for node, inputs in runs]


def _observe_inside(node: NodeProto, model: ModelProto, values: dict[str, Any]) -> Runs:
    """Run a node with subgraphs on onnx.reference, and return what `observe` does for the nodes in them."""
    runs: Runs = []

    def observed(base: Any) -> type:
        def run(self: Any, *inputs: Any, **attributes: Any) -> Any:
            runs.append((self.onnx_node, list(inputs)))
            return base.run(self, *inputs, **attributes)

        return type(base.__name__, (base,), {"run": run})

    read = [name for name in names_read(node) if name in values]
    single = alone(node, model)
    del single.graph.input[:]
    single.graph.input.extend(ValueInfoProto(name=name) for name in read)
    with suppress(Exception):  # of whatever kind, for what onnx.reference cannot run: its nodes are not reached
        evaluator = ReferenceEvaluator(single, new_ops=[OneHot, *map(observed, (*reference_ops(), Identity))])
        evaluator.run(None, {name: values[name] for name in read})
    return runs


class OneHot(op_one_hot.OneHot):
    """The operator with a depth of one axis, too, as its text allows."""

    def run(self, indices: Any, depth: Any, values: Any, **attributes: Any) -> Any:
        return super().run(indices, depth.reshape(()), values, **attributes)


def _usual(node: NodeProto, position: int, value: Any, opset: int) -> Any:
    """Return an input as onnxruntime has it. onnx.reference has views, and a scalar for the number of an iteration."""
    if value is None or isinstance(value, list):
        return value and [np.asarray(item, order="C") for item in value]
    value = np.asarray(value, order="C")
    is_bound = is_ours(node) and position in version_of(node, opset).bounds(position + 1)
    return value.reshape(-1) if is_bound and node.op_type == "Slice" else value


def alone(node: NodeProto, model: ModelProto) -> ModelProto:
    """Return a model of one node, without types."""
    given, taken = ([ValueInfoProto(name=name) for name in names if name] for names in (node.input, node.output))
    single = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    single.graph.CopyFrom(helper.make_graph([node], "node", given, taken))
    return single
