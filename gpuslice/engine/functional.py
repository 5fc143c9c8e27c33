"""The executor for arrays that cannot be written: results are what indexing and concat return, copied."""

from collections import abc

from gpuslice.engine.generic import indexed
from gpuslice.engine.joined import Lazy
from gpuslice.libraries import Array


def dense(values: abc.Sequence[Lazy]) -> list[Array]:
    """Return a new array with the items of each value. How it lies in memory is the library's choice."""
    return [value.xp.asarray(indexed(value), copy=True) for value in values]
