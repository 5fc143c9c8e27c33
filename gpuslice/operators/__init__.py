"""The operators as Python functions: each makes views by `gpuslice.lazy` and returns arrays as its caller asks."""

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
from gpuslice.operators.slicing import contiguous, dynamic_slice, slice, split

__all__ = [
    "concat_from_sequence",
    "contiguous",
    "dynamic_slice",
    "sequence_at",
    "sequence_construct",
    "sequence_empty",
    "sequence_erase",
    "sequence_insert",
    "sequence_length",
    "slice",
    "split",
    "split_to_sequence",
]
