"""The copy engine on NumPy arrays: many views in few launches, threads, and what NumPy copies instead of kernels."""

import os
import re
import reprlib
import subprocess
import sys
import threading
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers import assert_same, chain, compiled, items

import gpuslice as gs
from gpuslice.engine import View, host, prepared_for
from gpuslice.onnx import Graph
from gpuslice.rules import slice_region

pytestmark = pytest.mark.usefixtures("kernels_from_512_bytes")

R = slice(None, None, -1)


@compiled
def test_concat_is_one_launch():
    x = items(30, 200)
    for parts in ([x[:, :40], x[:, 40:41], x[:, 41:]], [items(30, 40), items(30, 7)[R], items(30, 64)]):
        with gs.trace() as t:
            joined = gs.concat_from_sequence(parts, axis=1)
        assert_same(joined, np.concatenate(parts, axis=1))
        assert sum(launch.bytes_written for launch in t.launches) == joined.nbytes
        assert parts[1].shape != (30, 1) or len(t.launches) == 1
    with gs.trace() as t:
        stacked = gs.concat_from_sequence([items(64, 64)] * 5, axis=0, new_axis=1)
    assert_same(stacked, np.stack([items(64, 64)] * 5))
    assert len(t.launches) == 1


@compiled
def test_a_graph_of_slices_and_splits_is_one_launch():
    x = items(9, 60, 64, dtype="f4")
    with gs.trace() as t:
        results = Graph(chain()).run({"x": x})
    assert_same(results["a"], x[1:, :20, ::-1].copy())
    assert_same(results["c"], x[1:, 40:, ::-1].copy())
    assert [launch.kernel for launch in t.launches] == ["rows<4, -1>"]
    assert t.allocations == [results["a"].nbytes, results["c"].nbytes]


def test_numpy_copies_what_kernels_cannot():
    many_axes = items(*[2] * 14)[tuple(slice(None, None, -1 if k % 2 else 1) for k in range(14))]
    objects = np.array([[str(i) for i in range(40)]] * 40, dtype=object)
    for view in (many_axes, objects[:, R], np.zeros((9000, 0)), items(64)[R]):
        with gs.trace() as t:
            assert_same(gs.contiguous(view), view.copy())
        assert {(launch.executor, launch.kernel) for launch in t.launches} <= {("numpy", "copyto"), ("numpy", "copy")}


@compiled
def test_a_view_of_many_axes_leaves_the_others_to_kernels():
    many_axes = np.zeros((5,) * 9, np.uint8)[(slice(None, None, 2),) * 9]
    x = items(8192)
    with gs.trace() as t:
        results = gs.contiguous([x[R], many_axes])
    assert_same(results[0], x[R].copy())
    assert_same(results[1], many_axes.copy())
    assert sorted(launch.executor for launch in t.launches) == ["host", "numpy"]


@compiled
def test_a_copy_succeeds_if_no_thread_can_be_started():
    """This runs in its own process, which has no address space left for the stack of a thread."""
    code = """
import re, resource
import numpy as np
import gpuslice as gs
x = np.arange(64 << 20, dtype=np.uint32).view(np.uint8)[: 64 << 20]
out = np.ones_like(x)
used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20),) * 2)
gs.contiguous(x[::-1], out=out)
assert (out[: 1 << 20] == x[-1 : -(1 << 20) - 1 : -1]).all() and (out[-1000:] == x[:1000][::-1]).all()
"""
    environment = os.environ | {"GPUSLICE_NUM_THREADS": "8", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_many_views_of_different_strides():
    x = items(200_000)
    views = [x[: 20 * (k + 1) : k + 1] for k in range(2000)]
    for result, view in zip(gs.contiguous(views), views, strict=True):
        assert_same(result, view.copy())
    outs = [np.empty(1, np.uint8) for _ in range(3000)]
    assert gs.split(x[:3000], [1] * 3000, out=outs)[2999] == x[2999]


def test_strided_and_unaligned_out():
    x = items(50, 60, dtype="u2")
    for out in (
        np.zeros((100, 60), "u2")[::2],
        np.zeros((60, 50), "u2").T,
        np.zeros(6001, "u1")[1:].view("u2").reshape(50, 60),
        np.zeros((50, 60), "u2")[R],
        np.zeros((50, 60), "u2")[:, R],
    ):
        assert_same(gs.contiguous(x[R, R], out=out).copy(), x[R, R].copy())


@compiled
@pytest.mark.parametrize(
    ("sizes", "strides"),
    [([20, 30], [R, R]), ([25, 25], [slice(None, None, 2), slice(None, None, 3)])],
    ids=["backward, of different lengths", "of different strides"],
)
def test_targets_that_cannot_share_a_launch(sizes, strides):
    x = items(50, 60)
    outs = [np.zeros((150, 60), "u1")[stride][:size] for size, stride in zip(sizes, strides, strict=True)]
    with gs.trace() as t:
        gs.split(x, sizes, out=outs)
    for out, expected in zip(outs, np.split(x, [sizes[0]]), strict=True):
        assert (out == expected).all()
    assert len(t.launches) == 2


def test_a_trace_shows_shapes():
    x = items(64, 6, 4, dtype=np.float32)
    with gs.trace() as t:
        gs.split(x, [2, 4], axis=1)
        gs.contiguous(x[0, 0])
    with gs.trace() as large:
        parts = gs.split(np.zeros((2, 1 << 21), np.uint8), [1 << 20, 1 << 20], axis=1)
    assert [shape for launch in t.launches for shape in launch.shapes] == [(64, 2, 4), (64, 4, 4), (4,)]
    assert [shape for launch in large.launches for shape in launch.shapes] == [part.shape for part in parts]
    assert repr(t).startswith("Trace(")
    for collected in (t, large, gs.Trace()):
        lines = repr(collected).splitlines()
        written = sum(launch.bytes_written for launch in collected.launches)
        assert f"{written} bytes written, {len(collected.allocations)} allocation" in lines[0]
        for launch, line in zip(collected.launches, lines[1:], strict=False):
            assert line == f"    {launch!r}"
            assert f"{launch.executor} {launch.kernel}, {len(launch.shapes)} x ({launch.shapes[0][0]}" in line
        table = ElementTree.fromstring(f"<div>{collected._repr_html_()}</div>")
        kernels = [row[1].text for row in table.iter("tr") if row[0].tag == "td"]
        assert kernels == [launch.kernel for launch in collected.launches]
    many = gs.Trace([t.launches[0]] * 12)
    assert repr(many).splitlines()[-2:] == ["    2 more", ")"]
    assert many._repr_html_().endswith("<p>2 more</p>")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"GPUSLICE_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"OMP_NUM_THREADS": "5,2"}, 5),
        ({"OMP_NUM_THREADS": "none"}, None),
    ],
)
def test_number_of_threads(monkeypatch, environment, expected):
    for name in ("GPUSLICE_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert host.threads() == (expected or len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("value", ["abc", "0", "-1", "1e3", "9" * 5000, "1.5", ",2", " "])
def test_a_number_of_threads_that_is_none_is_said_and_ignored(monkeypatch, value):
    monkeypatch.setenv("GPUSLICE_NUM_THREADS", value)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    shown = re.escape(reprlib.repr(value))
    message = f"^GPUSLICE_NUM_THREADS must be a positive int; got {shown}; it is ignored$"
    with pytest.warns(RuntimeWarning, match=message):
        assert host.threads() == 3
    x = items(4100, 5000)
    with pytest.warns(RuntimeWarning, match=message):
        assert_same(gs.contiguous(x[:, R]), x[:, R].copy())


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_share_a_large_copy(monkeypatch, threads):
    monkeypatch.setenv("GPUSLICE_NUM_THREADS", threads)
    x = items(4100, 5000)
    assert_same(gs.contiguous(x[:, R]), x[:, R].copy())
    strided = np.zeros((4100, 5008), np.uint8)[:, :4992]  # rows of whole vectors
    assert (gs.contiguous(x[R, :4992], out=strided) == x[R, :4992]).all()
    for part, expected in zip(gs.split(x, num_outputs=3, axis=1), np.split(x, [1667, 3334], axis=1), strict=True):
        assert_same(part, expected.copy())


@compiled
def test_arrays_that_lie_in_a_vector_in_every_way():
    memory = items(70_000)
    for offset in [*range(18), *range(18)]:
        rows = memory[offset:][: 130 * 500].reshape(130, 500)
        halves = tuple([memory[offset + i :][: 130 * 250].reshape(130, 250) for i in range(2)])
        assert_same(gs.slice(rows, [-1], [-999], [1], [-1]), rows[:, R].copy())
        assert_same(gs.concat_from_sequence(halves, axis=1), np.concatenate(halves, axis=1))


def test_threads_of_python_share_the_plans():
    arrays = [items(40 + i, 130, dtype=dtype) for i, dtype in enumerate(["u1", "u2", "u4", "f8"] * 3)]
    failures = []

    def work():
        for _ in range(20):
            for array in arrays:
                same = gs.contiguous(array[R, ::-3]).tobytes() == array[R, ::-3].tobytes()
                failures.extend([] if same else [array.shape])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


@pytest.mark.slow
@pytest.mark.skipif("GPUSLICE_SLOW_TESTS" not in os.environ, reason="needs 10 GB; set GPUSLICE_SLOW_TESTS=1")
def test_arrays_over_2_to_the_32():
    x = np.zeros(2**32 + 5000, np.uint8)
    x[:3000] = items(3000)
    x[2**31 - 100 : 2**31 + 100] = items(200)
    x[-3000:] = items(3000)
    result = gs.slice(x, [-1], [-(2**63)], steps=[-1])
    for start, end in ((0, 3000), (2**31 - 100, 2**31 + 5100), (len(x) - 3000, len(x))):
        assert (result[start:end] == x[len(x) - end : len(x) - start][::-1]).all()
    del result
    left, right = gs.split(x[: 2**32].reshape(2, 2**31), [2**31 - 7, 7], axis=1)
    assert (right == x[: 2**32].reshape(2, 2**31)[:, -7:]).all()
    assert (left[1, :100] == x[2**31 : 2**31 + 100]).all()


@compiled
def test_every_kernel_of_a_known_call_comes_before_the_first_copy(kernels_for_all, monkeypatch):
    x = items(64, 128)
    view = View.of(x)
    views = [view.part(slice_region(x.shape, [-1], [-999], [1], [step])) for step in (-1, -2)]
    prepared = prepared_for(x, views)
    outs = [np.zeros(part.shape, np.uint8) for part in views]
    asked = []

    def kernel(packed):
        asked.append(packed.launch.name)
        if len(asked) == 2:
            raise RuntimeError("does not compile")
        return packed.kernel_number

    monkeypatch.setattr(host.HOST_EXECUTOR, "kernel", kernel)
    with pytest.raises(RuntimeError, match="does not compile"):
        prepared.into(x, outs)
    assert asked == ["rows<1, -1>", "rows<1, -2>"]
    assert not any(out.any() for out in outs)
    monkeypatch.undo()
    for result, expected in zip(prepared.fresh(x), (x[:, R], x[:, ::-2]), strict=True):
        assert_same(result, expected.copy())
