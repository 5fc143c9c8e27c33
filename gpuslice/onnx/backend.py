"""The protocol of onnx.backend.base: ONNX's own test runner, and all that use the protocol, can run this package."""

from collections import abc
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend as BackendBase
from onnx.backend.base import BackendRep
from onnx.defs import onnx_opset_version

from gpuslice import devices
from gpuslice.errors import describe, error_prefix
from gpuslice.onnx.graph import Graph
from gpuslice.onnx.model import UnsupportedNodes
from gpuslice.onnx.node import check_node, check_opset, run_node, version_of
from gpuslice.sequence import Sequence


class PreparedModel(BackendRep):
    """A model ready to run on a device.

    Parameters
    ----------
    model : onnx.ModelProto
    device : str
        "CPU", "CUDA" or a CUDA device by its number, such as "CUDA:1".
    """

    def __init__(self, model: ModelProto, device: str = "CPU") -> None:
        self.graph: Graph = Graph(model)
        self.device = device

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Parameters
        ----------
        inputs : list, tuple or mapping
            Arrays of any library, in the order of the graph's inputs or by name. NumPy arrays are copied to the
            device.

        Returns
        -------
        tuple
            One entry per graph output. Sequences are lists, as in the protocol. If all inputs are NumPy arrays, all
            outputs are.
        """
        if not isinstance(inputs, abc.Mapping):
            _check_inputs(inputs)
            if len(inputs) > len(self.graph.inputs):
                raise ValueError(
                    f"inputs must be at most {len(self.graph.inputs)}, the number of the model; got {len(inputs)}"
                )
            inputs = dict(zip(self.graph.inputs, inputs, strict=False))
        placed = {name: devices.place(value, self.device) for name, value in inputs.items()}
        results = [value for _, value in self.graph.run_in_order(placed)]
        return _delivered(results, inputs.values())


class Backend(BackendBase):
    """gpuslice as a backend: ``Backend.prepare(model).run(inputs)``."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether `prepare` accepts a model and a device."""
        try:
            cls.prepare(model, device, **kwargs)
        except Exception:  # of whatever kind
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Return a model ready to run.

        Raises
        ------
        ValueError
            The model or the device is not supported. If that is because of an operator, the error is an instance of
            ``onnx.backend.test.runner.BackendIsNotSupposedToImplementIt`` too.
        TypeError
            ``model`` is not a ModelProto, or declares an element type that does not exist.
        """
        devices.check(device)
        try:
            return PreparedModel(model, device)
        except UnsupportedNodes as error:
            raise _not_implemented()(str(error)) from None

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node by the opset ``opset_version=``, by default the newest that onnx knows."""
        devices.check(device)
        check_node(node)
        opset = check_opset(node, kwargs.get("opset_version", onnx_opset_version()))
        try:
            version_of(node, opset)
        except ValueError as error:
            raise _not_implemented()(str(error)) from None
        with error_prefix(node.op_type):
            _check_inputs(inputs)
        given = list(islice(inputs, len(inputs)))  # a subclass's iterator may be endless
        placed: abc.Sequence[Any] = [devices.place(value, device) for value in given]
        return _delivered(run_node(node, placed, opset=opset), given)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device, such as "CPU", "CUDA" or "CUDA:1", is available."""
        return devices.is_available(device)


@cache
def _not_implemented() -> type[ValueError]:
    """Return the class of errors for operators that are not supported. ONNX's test runner skips tests that raise it."""
    from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt  # takes long to import

    return type("NotImplementedByBackend", (UnsupportedNodes, BackendIsNotSupposedToImplementIt), {})


def _check_inputs(inputs: Any) -> None:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a list, tuple or mapping of values; got {describe(inputs)}")


def _delivered(results: abc.Iterable[Any], inputs: abc.Iterable[Any]) -> tuple[Any, ...]:
    """Return results as the protocol has them, on the host if no input is on a device."""
    if all(map(_is_on_host, inputs)):
        results = devices.to_host(results)
    return tuple(list(value) if isinstance(value, Sequence) else value for value in results)


def _is_on_host(value: Any) -> bool:
    if isinstance(value, (Sequence, list, tuple)):
        return all(map(_is_on_host, value))
    return value is None or isinstance(value, (bool, int, float, np.ndarray, np.generic))
