"""The protocol of onnx.backend.base: ONNX's own test runner, and all that use the protocol, can run this package."""

from collections import abc
from typing import Any

from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend as BackendBase
from onnx.backend.base import BackendRep
from onnx.defs import onnx_opset_version

from gpuslice import devices
from gpuslice.libraries import is_array
from gpuslice.onnx.graph import Graph
from gpuslice.onnx.model import unsupported
from gpuslice.onnx.node import run_node
from gpuslice.sequence import Sequence


class PreparedModel(BackendRep):
    """A model ready to run on a device.

    Parameters
    ----------
    model : onnx.ModelProto
    device : {"CPU", "CUDA"}
    """

    def __init__(self, model: ModelProto, device: str = "CPU") -> None:
        self.graph: Graph = Graph(model)
        self.device = device

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence or mapping
            Arrays of any library, in the order of the graph's inputs or by name. NumPy arrays are copied to the
            device.

        Returns
        -------
        tuple
            One entry per graph output. Sequences are lists, as in the protocol.
        """
        if not isinstance(inputs, abc.Mapping):
            if is_array(inputs):
                raise TypeError("inputs must be a sequence or a mapping of arrays; got an array")
            if len(inputs) > len(self.graph.inputs):
                raise ValueError(
                    f"inputs must be at most {len(self.graph.inputs)}, the number of the model; got {len(inputs)}"
                )
            inputs = dict(zip(self.graph.inputs, inputs, strict=False))
        placed = {name: devices.place(value, self.device) for name, value in inputs.items()}
        return tuple(map(_as_list, self.graph.run(placed).values()))


class Backend(BackendBase):
    """gpuslice as a backend: ``Backend.prepare(model).run(inputs)``."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether every node of a model can run."""
        try:
            return not unsupported(model)
        except ValueError:  # no opset
            return False

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Return a model ready to run; raise ValueError if it or the device is not supported."""
        devices.check(device)
        return PreparedModel(model, device)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node by the opset ``opset_version=``, by default the newest that onnx knows."""
        devices.check(device)
        opset = kwargs.get("opset_version", onnx_opset_version())
        placed: abc.Sequence[Any] = [devices.place(value, device) for value in inputs]
        return tuple(map(_as_list, run_node(node, placed, opset=opset)))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device, "CPU" or "CUDA", is available."""
        return devices.is_available(device)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) else value
