"""The copy engine: any number of views become dense arrays. It knows strides and items, and nothing of ONNX."""

from gpuslice.engine.bridged import prepared_for, prepared_join
from gpuslice.engine.consecutive import Consecutive
from gpuslice.engine.copying import copy_into, dense, dense_in_one_block
from gpuslice.engine.generic import gives_views, indexed
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.kernel_executor import BLOCK_ABOVE
from gpuslice.engine.memory import TOO_LARGE, check_parts_fit
from gpuslice.engine.prepared import EXECUTORS, PREPARERS, Prepared
from gpuslice.engine.prepared_joins import PreparedJoin
from gpuslice.engine.trace import Launch, Trace, is_tracing, trace
from gpuslice.engine.views import View
from gpuslice.engine.warm_up import warm_up

__all__ = [
    "BLOCK_ABOVE",
    "EXECUTORS",
    "PREPARERS",
    "TOO_LARGE",
    "Consecutive",
    "Joined",
    "Launch",
    "Lazy",
    "Prepared",
    "PreparedJoin",
    "Trace",
    "View",
    "check_parts_fit",
    "copy_into",
    "dense",
    "dense_in_one_block",
    "gives_views",
    "indexed",
    "is_tracing",
    "prepared_for",
    "prepared_join",
    "trace",
    "warm_up",
]
