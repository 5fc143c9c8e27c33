"""reference_ops(): these operators for onnx.reference's ReferenceEvaluator, in place of its own."""

from typing import Any

from onnx.reference.op_run import OpRun

from gpuslice.errors import error_prefix
from gpuslice.onnx.evaluate import evaluate, finish
from gpuslice.onnx.node import version_of
from gpuslice.sequence import Sequence
from gpuslice.versions import OPERATORS


class _Operator(OpRun):
    op_domain = ""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        version = version_of(self.onnx_node, self.run_params["opsets"][""])
        # The evaluator passes every attribute of its own newest schema: None if the node does not have it, and the
        # caller's value if the node is in a function.
        given = {entry.name for entry in self.onnx_node.attribute}
        attributes = {name: _plain(value) for name, value in attributes.items() if name in given and value is not None}
        names = self.onnx_node.output
        with error_prefix(version.name):
            outputs = evaluate(version, inputs, attributes, len(names))
        return tuple(list(value) if isinstance(value, Sequence) else value for value in finish(outputs))


def reference_ops() -> list[type]:
    """Return one class per operator, for ``ReferenceEvaluator(model, new_ops=reference_ops())``.

    The evaluator passes the model's opset to each class, which selects the version. onnx.reference runs all the rest of
    the model, subgraphs and functions included.

    Returns
    -------
    list of class
        Each has the name of its operator.

    Examples
    --------
    >>> from gpuslice.onnx import reference_ops
    >>> reference_ops()[0].__name__
    'Slice'
    """
    return [type(name, (_Operator,), {}) for name in OPERATORS]


def _plain(value: Any) -> Any:
    return [int(item) for item in value] if hasattr(value, "__len__") else int(value)
