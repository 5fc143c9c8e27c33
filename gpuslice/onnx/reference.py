"""reference_ops(): these operators for onnx.reference's ReferenceEvaluator, in place of its own."""

from typing import Any

from onnx.reference.op_run import OpRun

from gpuslice.errors import speaking_as
from gpuslice.onnx.evaluate import evaluate, finish
from gpuslice.onnx.node import version_of
from gpuslice.onnx.schemas import OPERATORS
from gpuslice.sequence import Sequence


class _Operator(OpRun):
    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        version = version_of(self.onnx_node, self.run_params["opsets"][""])
        # The evaluator gives every attribute of its own newest schema; None is one that the node does not have, and
        # what a function's caller gave takes the place of the node's.
        given = {entry.name for entry in self.onnx_node.attribute}
        attributes = {name: _plain(value) for name, value in attributes.items() if name in given and value is not None}
        names = self.onnx_node.output
        with speaking_as(version.name):
            outputs = evaluate(version, inputs, attributes, len(names))
        return tuple(list(value) if isinstance(value, Sequence) else value for value in finish(outputs))


def reference_ops() -> list[type]:
    """Give one class an operator, for ``ReferenceEvaluator(model, new_ops=reference_ops())``.

    The evaluator tells each the model's opset, which selects the version. Whatever else the model has, subgraphs and
    functions included, is onnx.reference's.

    Returns
    -------
    list of class
        Each named like its operator.

    Examples
    --------
    >>> from gpuslice.onnx import reference_ops
    >>> reference_ops()[0].__name__
    'Slice'
    """
    return [type(name, (_Operator,), {}) for name in OPERATORS]


def _plain(value: Any) -> Any:
    return [int(item) for item in value] if hasattr(value, "__len__") else int(value)
