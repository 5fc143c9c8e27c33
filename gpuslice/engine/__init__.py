"""The copy engine: any number of views become dense arrays. It knows strides and items, and nothing of ONNX."""

from gpuslice.engine.copying import copy_into, dense, dense_in_one_block
from gpuslice.engine.generic import gives_views, indexed
from gpuslice.engine.trace import Launch, Trace, trace
from gpuslice.engine.views import Joined, View

__all__ = [
    "Joined",
    "Launch",
    "Trace",
    "View",
    "copy_into",
    "dense",
    "dense_in_one_block",
    "gives_views",
    "indexed",
    "trace",
]
