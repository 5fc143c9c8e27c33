"""The ONNX layer: nodes, models, the backend protocol and operators for onnx.reference. It needs the onnx package."""

try:
    import onnx as _onnx  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "onnx":  # onnx is there, and lacks something else
        raise
    raise ImportError("gpuslice.onnx needs the onnx package: pip install 'gpuslice[onnx]'") from _error

from gpuslice.onnx.backend import Backend
from gpuslice.onnx.graph import Graph
from gpuslice.onnx.load import load_model
from gpuslice.onnx.model import unsupported
from gpuslice.onnx.node import run_node
from gpuslice.onnx.parts import parts
from gpuslice.onnx.reference import reference_ops
from gpuslice.versions import VERSIONS

__all__ = ["VERSIONS", "Backend", "Graph", "load_model", "parts", "reference_ops", "run_node", "unsupported"]
