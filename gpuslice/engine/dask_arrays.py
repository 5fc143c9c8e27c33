"""The executor for Dask arrays: results are lazy, and their chunks are made dense where they are computed."""

from collections import abc

from gpuslice.engine import copying
from gpuslice.engine.generic import indexed
from gpuslice.engine.joined import Lazy
from gpuslice.engine.views import View
from gpuslice.libraries import Array


def dense(values: abc.Sequence[Lazy]) -> list[Array]:
    """Return a new lazy array with the items of each value, each chunk of which will be new and C-contiguous."""
    return [_with_dense_chunks(indexed(value)) for value in values]


def _with_dense_chunks(array: Array) -> Array:
    # With dtype and meta Dask need not try the function on an array without items.
    return array.map_blocks(dense_chunk, dtype=array.dtype, meta=array._meta)


def dense_chunk(chunk: Array) -> Array:
    """Return a dense copy of a chunk, of any library. Workers call this, by its name."""
    return copying.dense([View.of(chunk, "a chunk")])[0]
