"""Dask: results are lazy, chunks are dense where they are computed, and what is not known yet is refused."""

import os

import numpy as np
import pytest
from helpers import MOVES

import gpuslice as gs

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

LOW = -(2**63)
X = np.arange(6 * 8, dtype=np.float32).reshape(6, 8)
CALLS = {
    **MOVES,
    "backward": (lambda x: gs.slice(x, [-1, -1], [LOW, LOW], steps=[-1, -2]), lambda x: x[::-1, ::-2]),
    "join of views": (
        lambda x: gs.concat_from_sequence([x, x[:, ::-1]], axis=0),
        lambda x: np.concatenate([x, x[:, ::-1]]),
    ),
    "stack of views": (
        lambda x: gs.concat_from_sequence([x, x[::-1]], axis=2, new_axis=1),
        lambda x: np.stack([x, x[::-1]], 2),
    ),
}


def lazy(chunks=(4, 3)):
    return da.from_array(X, chunks=chunks)


def blocks(array):
    """Return the chunks of an array, computed, but not put together."""
    return [np.asarray(block) for block in da.compute(*array.to_delayed().ravel(), scheduler="synchronous")]


@pytest.mark.parametrize("name", CALLS)
def test_every_chunk_is_dense_and_new(name):
    call, expected = CALLS[name]
    with gs.trace() as t:
        result = call(lazy())
    assert not t.launches  # nothing is computed yet
    assert isinstance(result, da.Array)
    assert (result.shape, result.dtype) == (expected(X).shape, X.dtype)
    for block in blocks(result):
        assert block.flags.c_contiguous
        assert not np.shares_memory(block, X)
    assert (result.compute() == expected(X)).all()


def test_views_are_left_as_dask_has_them():
    mirrored = gs.slice(lazy(), [-1], [LOW], axes=[1], steps=[-1], copy=None)
    assert not any(block.flags.c_contiguous for block in blocks(mirrored) if block.shape[1] > 1)


def test_chunks_of_other_libraries_keep_their_library():
    sparse = pytest.importorskip("sparse", reason="sparse is not installed")
    x = lazy().map_blocks(sparse.COO.from_numpy, dtype=X.dtype, meta=sparse.COO.from_numpy(X[:0, :0]))
    result = gs.slice(x, [-1], [LOW], steps=[-1]).compute()
    assert isinstance(result, sparse.COO)
    assert (result.todense() == X[::-1]).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
def test_cupy_chunks_are_dense_and_new(name):
    import cupy

    call, expected = CALLS[name]
    on_device = cupy.asarray(X)
    result = call(da.from_array(on_device, chunks=(4, 3), asarray=False))
    with gs.trace() as t:
        chunks = da.compute(*result.to_delayed().ravel(), scheduler="synchronous")
    assert {launch.executor for launch in t.launches} == {"cuda"}
    for chunk in chunks:
        assert isinstance(chunk, cupy.ndarray)
        assert chunk.flags.c_contiguous
        assert not cupy.may_share_memory(chunk, on_device)
    assert (result.compute(scheduler="synchronous").get() == expected(X)).all()


UNKNOWN = {
    "slice": (lambda x: gs.slice(x, [0], [1], axes=[1]), "data"),
    "split": (lambda x: gs.split(x, num_outputs=2, axis=1), "input"),
    "split_to_sequence": (lambda x: gs.split_to_sequence(x, axis=1), "input"),
    "concat_from_sequence": (lambda x: gs.concat_from_sequence([lazy()[:0], x], axis=0), r"seq\[1\]"),
    "sequence_at": (lambda x: gs.sequence_at([lazy(), x], -1), r"seq\[1\]"),
    "contiguous": (lambda x: gs.contiguous([x]), r"views\[0\]"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_lengths_are_refused(name):
    x = lazy()
    unknown = x[x[:, 0] > 10]
    call, argument = UNKNOWN[name]
    message = r"must have a known length along axis 0; got shape \(nan, 8\): call compute_chunk_sizes\(\) first"
    with pytest.raises(ValueError, match=f": {argument} {message}"):
        call(unknown)
    call(unknown.compute_chunk_sizes())


LAZY_BOUNDS = {
    "starts": lambda x, b: gs.slice(x, b, [2]),
    "ends": lambda x, b: gs.slice(x, [0], [b[0]]),
    "split": lambda x, b: gs.split(x, b),
    "position": lambda x, b: gs.sequence_at([x], b),
    "axis": lambda x, b: gs.concat_from_sequence([x], axis=b[0]),
}


@pytest.mark.parametrize("argument", LAZY_BOUNDS)
def test_lazy_bounds_are_refused(argument):
    def fails(block):
        raise AssertionError("it was computed")

    bounds = da.from_array(np.array([0])).map_blocks(fails, dtype=np.int64, meta=np.array([0]))
    with pytest.raises(
        TypeError,
        match=rf"{argument} must be known when the call is made; got Array of dask.array: .* call compute\(\) first",
    ):
        LAZY_BOUNDS[argument](lazy(), bounds)


def test_masked_chunks_are_refused():
    masked = da.ma.masked_greater(lazy(), 3)
    with pytest.raises(TypeError, match="data must not be a masked array, since its mask would be lost"):
        gs.slice(masked, [0], [1])


def tasks(arrays):
    """Return how many tasks compute some arrays, after Dask has fused what it can."""
    return sum(len(array.__dask_graph__()) for array in dask.optimize(*arrays))


def test_slicing_and_copying_a_chunk_is_one_task():
    x = da.zeros((400, 300), chunks=(100, 100)).persist(scheduler="synchronous")
    mirrored = gs.slice(x, [-1, -1], [LOW, LOW], steps=[-1, -1])
    assert tasks([mirrored]) == tasks([x[::-1, ::-1]]) == 12 + 12  # the chunks of x, and those of the result


@pytest.mark.slow
@pytest.mark.skipif("GPUSLICE_SLOW_TESTS" not in os.environ, reason="starts processes; set GPUSLICE_SLOW_TESTS=1")
def test_a_cluster_of_processes():
    """Each chunk is dense on the worker that computes it, in processes of their own."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        x = client.persist(da.random.default_rng(0).random((400, 300), chunks=(100, 100)))
        mirrored = gs.slice(x, [-1, -1], [LOW, LOW], steps=[-1, -1])
        parts = gs.split(mirrored, [150, 150], axis=1)
        told = [part.map_blocks(_facts, dtype=object, meta=np.empty((0, 0), object)) for part in parts]
        facts = client.compute(told, sync=True)
        assert all(is_dense for part in facts for is_dense, _ in part.flat)
        assert len({process for part in facts for _, process in part.flat} - {os.getpid()}) == 2
        joined = client.compute(da.concatenate(parts, axis=1), sync=True)
        assert (joined == client.compute(x, sync=True)[::-1, ::-1]).all()


def _facts(block):
    fact = np.empty((1, 1), object)
    fact[0, 0] = (block.flags.c_contiguous, os.getpid())
    return fact
