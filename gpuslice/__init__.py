"""ONNX's data-movement operators on any Array API array: Slice, DynamicSlice, Split and the sequence family.

Use ``import gpuslice as gs``: a plain import of `slice` hides the builtin. The ONNX layer (nodes, models, the backend
protocol) is `gpuslice.onnx` and needs the onnx package.
"""

import sys

if sys.argv[:1] == ["-m"]:  # this is `python -m gpuslice`, and what follows takes a while
    import _gpuslice_command

    _gpuslice_command.handle_signals()

from gpuslice.caches import clear_caches
from gpuslice.config import show_config
from gpuslice.engine import Launch, Trace, trace, warm_up
from gpuslice.operators.sequences import (
    concat_from_sequence,
    sequence_at,
    sequence_construct,
    sequence_empty,
    sequence_erase,
    sequence_insert,
    sequence_length,
    split_to_sequence,
)
from gpuslice.operators.slicing import contiguous, dynamic_slice, split
from gpuslice.operators.slicing import slice as slice
from gpuslice.sequence import Sequence

# `slice` is public, as its "as slice" tells type checkers. It is not listed, so that `from gpuslice import *` does not
# hide the builtin.
__all__ = [
    "Launch",
    "Sequence",
    "Trace",
    "clear_caches",
    "concat_from_sequence",
    "contiguous",
    "dynamic_slice",
    "sequence_at",
    "sequence_construct",
    "sequence_empty",
    "sequence_erase",
    "sequence_insert",
    "sequence_length",
    "show_config",
    "split",
    "split_to_sequence",
    "trace",
    "warm_up",
]

__version__ = "0.1.0"
