"""reference_ops(): these operators for onnx.reference's ReferenceEvaluator, in place of its own."""

from functools import cached_property
from operator import is_
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from gpuslice.errors import error_prefix
from gpuslice.onnx.evaluate import evaluate, finish
from gpuslice.onnx.known_runs import KnownRuns
from gpuslice.onnx.node import DOMAINS, version_of
from gpuslice.sequence import Sequence
from gpuslice.versions import OPERATORS, Version


class _Operator(OpRun):
    op_domain = ""

    @cached_property
    def _version(self) -> Version:
        opsets = self.run_params["opsets"]
        return version_of(self.onnx_node, max(opsets[domain] for domain in DOMAINS if domain in opsets))

    @cached_property
    def _given(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.onnx_node.attribute)

    @cached_property
    def _known(self) -> KnownRuns | None:
        """What is known of this node's runs; None if its attributes are those of a function's caller."""
        if any(entry.ref_attr_name for entry in self.onnx_node.attribute):
            return None
        return KnownRuns(self._version.bounds(len(self.onnx_node.input)), {})

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what OpRun does, but raise the operator's own TypeError."""
        try:
            known = self._known.run(self._known.key(enumerate(args)), args) if self._known else None
            if known is not None:
                return tuple(map(_as_output, known))
            return super().run(*args, **kwargs)  # type: ignore[no-untyped-call]
        except TypeError as error:
            if isinstance(error.__cause__, TypeError):
                raise error.__cause__ from None
            raise

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        version = self._version
        # The evaluator passes every attribute of its own newest schema: None if the node does not have it, and the
        # caller's value if the node is in a function.
        given = {name: _plain(value) for name, value in attributes.items() if name in self._given and value is not None}
        with error_prefix(version.name):
            values = [_as_input(version, position, value) for position, value in enumerate(inputs)]
            outputs = evaluate(version, values, given, len(self.onnx_node.output))
        known = self._known
        return tuple(
            map(_as_output, known.finish(known.key(enumerate(inputs)), inputs, outputs) if known else finish(outputs))
        )


def reference_ops() -> list[type]:
    """Return one class per operator, for ``ReferenceEvaluator(model, new_ops=reference_ops())``.

    The evaluator passes the model's opset to each class, which selects the version. onnx.reference runs all the rest of
    the model, subgraphs included. It runs the functions of a model without them.

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


class _Items(list[Any]):
    """A sequence as onnx.reference has them, which knows its element type, and that its items have been checked."""

    def __init__(self, checked: Sequence[Any]) -> None:
        super().__init__(checked)
        self._checked = checked

    def as_sequence(self) -> Any:
        """Return the sequence that this list was made of; the list itself if it has been changed."""
        same = len(self) == len(self._checked) and all(map(is_, self, self._checked))
        return self._checked if same else self


def _as_input(version: Version, position: int, value: Any) -> Any:
    """Return an input as `evaluate` takes it.

    onnx.reference drops the shape of some tensors of one value: a Loop's iteration number is 0-d even if the model
    declares it otherwise. So any tensor of one value is a bound here. Only the sizes of SplitToSequence differ by rank.
    """
    if isinstance(value, _Items):
        return value.as_sequence()
    expected = version.input(position)
    if expected is not None and expected.kind == "index" and version.operator != "SplitToSequence":
        return value.reshape(1) if isinstance(value, np.ndarray) and value.size == 1 else value
    return value


def _as_output(value: Any) -> Any:
    return _Items(value) if isinstance(value, Sequence) else value


def _plain(value: Any) -> Any:
    """Return an attribute's value as Python's numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value
