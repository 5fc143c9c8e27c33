"""The copy engine on NumPy arrays: which kernel takes what, in how many launches, and that every item is right."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from arrays import assert_same
from test_properties import pick

import gpuslice as gs
from gpuslice.engine import choice, host
from gpuslice.engine.packing import CUDA_32, CUDA_64, HOST, divisor, index_bits, pack
from gpuslice.engine.plan import Part, plan
from gpuslice.onnx import Graph
from gpuslice.rules import slice_region

compiled = pytest.mark.skipif(host.LIBRARY is None, reason="the host kernels are not built here")


@pytest.fixture(autouse=True)
def _kernels_from_512_bytes(monkeypatch):
    """Have the kernels copy what NumPy is quicker with, so that the tests' arrays may be small."""
    monkeypatch.setattr(choice, "SMALL_BYTES", 1 << 9)


def items(*shape, dtype="u1"):
    """Make an array of items that differ."""
    dtype = np.dtype(dtype)
    numbers = np.random.default_rng(0).integers(0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    return numbers.view(dtype).reshape(shape)


R = slice(None, None, -1)
# view, kernel; above the size below which NumPy copies.
KERNELS = {
    "contiguous": (lambda: items(8192), "rows<16, 1>"),
    "odd length": (lambda: items(8191), "rows<1, 1>"),
    "crop": (lambda: items(90, 101)[1:, 3:98], "rows<1, 1>"),
    "reversed": (lambda: items(8192)[R], "rows<1, -1>"),
    "reversed both ways": (lambda: items(64, 128)[R, R], "rows<1, -1>"),
    "reversed rows of halves": (lambda: items(64, 128, dtype="u2")[:, R], "rows<2, -1>"),
    "reversed outside": (lambda: items(64, 128)[R], "rows<16, 1>"),
    "reversed blocks of 4 bytes": (lambda: items(64, 128, 4)[:, R], "rows<4, -1>"),
    "every second byte": (lambda: items(16384)[::2], "rows<1, 2>"),
    "every third half, backward": (lambda: items(16384, dtype="u2")[::-3], "rows<2, -3>"),
    "every fifth word": (lambda: items(16384, dtype="u4")[::5], "rows<4, 0>"),
    "every second complex128": (lambda: items(1024, dtype="c16")[::2], "rows<16, 0>"),
    "transposed bytes": (lambda: items(80, 70).T, "tiles<1, 0>"),
    "transposed words, backward": (lambda: items(80, 70, dtype="u4").T[R, R], "tiles<4, 0>"),
    "channels turned round": (lambda: items(40, 64, 3)[..., R], "rearranged<1, 3>"),
    "mirrored pixels": (lambda: items(40, 64, 3)[:, R], "rearranged<1, -3>"),
    "mirrored pixels of halves": (lambda: items(40, 64, 3, dtype="u2")[:, R], "rearranged<2, -3>"),
    "3-byte items": (lambda: items(4096, dtype="V3")[R], "rearranged<1, -3>"),
    "6-byte items": (lambda: items(4096, dtype="V6")[R], "rearranged<2, -3>"),
    "48-byte items": (lambda: items(400, dtype="V48")[R], "rows<16, 1>"),
    "gray as RGB": (lambda: np.broadcast_to(items(90, 100, 1), (90, 100, 3)), "rows<1, 0>"),
    "repeated rows": (lambda: np.broadcast_to(items(1, 100), (90, 100)), "rows<4, 1>"),
    "unaligned words": (lambda: items(8193)[1:].view("u4")[R], "rearranged<1, -4>"),
}  # fmt: skip


@compiled
@pytest.mark.parametrize("case", KERNELS)
def test_kernel_and_every_item(case):
    make, kernel = KERNELS[case]
    view = make()
    expected = pick(view, [range(dim) for dim in view.shape])
    with gs.trace() as t:
        result = gs.contiguous(view)
    assert_same(result, expected)
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("host", kernel)]
    assert (t.launches[0].bytes_read, t.launches[0].bytes_written) == (view.nbytes, view.nbytes)
    assert t.allocations == [view.nbytes]


RGB = items(48, 64, 3)
SPLITS = {
    "8 outside": (items(64, 96), 0, [8] * 8, "rows<16, 1>"),
    "8 inside": (items(64, 96), 1, [12] * 8, "rows<4, 1>"),
    "8 inside, backward": (items(64, 96)[:, R], 1, [12] * 8, "rows<1, -1>"),
    "uneven, a single and an empty one": (items(64, 96), 1, [30, 1, 0, 60, 5], "rows<1, 1>"),
    "uneven, outside": (items(64, 192)[R, ::2], 0, [30, 1, 0, 28, 5], "rows<1, 2>"),
    "1,000 inside": (items(16, 1000), 1, [1] * 1000, "rows<1, 0>"),
    "1,000 outside": (items(1000, 16), 0, [1] * 1000, "rows<16, 1>"),
    "planes": (RGB, 2, [1] * 3, "planes<1, 3>"),
    "planes, mirrored": (RGB[:, R], 2, [1] * 3, "planes<1, -3>"),
    "planes, mirrored and in reverse order": (RGB[:, R, R], 2, [1] * 3, "planes<1, -3>"),
    "stereo": (items(4000, 2, dtype="i2"), 1, [1, 1], "planes<2, 2>"),
    "two of transposed": (items(80, 70).T, 0, [35, 35], "tiles<1, 0>"),
}


@compiled
@pytest.mark.parametrize("case", SPLITS)
def test_a_split_is_one_launch(case):
    array, axis, sizes, kernel = SPLITS[case]
    with gs.trace() as t:
        parts = gs.split(array, sizes, axis=axis)
    for part, expected in zip(parts, np.split(array, np.cumsum(sizes)[:-1], axis=axis), strict=True):
        assert_same(part, expected.copy())
    assert [launch.kernel for launch in t.launches] == [kernel]
    assert t.launches[0].bytes_read == t.launches[0].bytes_written == array.nbytes
    assert t.allocations == [part.nbytes for part in parts]


def on_device(view):
    """Make the view of a device's copy of the same memory, aligned alike."""
    import cupy

    low, high = np.lib.array_utils.byte_bounds(view)
    lead = low % 64
    memory = cupy.empty(lead + high - low, np.uint8)
    memory[lead:] = cupy.asarray(np.frombuffer((ctypes.c_ubyte * (high - low)).from_address(low), np.uint8))
    start = memory.data + (lead + view.__array_interface__["data"][0] - low)
    return cupy.ndarray(view.shape, view.dtype, start, strides=view.strides)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in KERNELS if "-byte" not in case])
def test_the_same_kernel_on_cuda(case):
    make, kernel = KERNELS[case]
    view = make()
    with gs.trace() as t:
        result = gs.contiguous(on_device(view))
    assert result.get().tobytes() == view.tobytes()
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("cuda", kernel)]
    assert t.allocations == [view.nbytes]


@pytest.mark.gpu
@pytest.mark.parametrize("case", SPLITS)
def test_a_split_is_one_launch_on_cuda(case):
    array, axis, sizes, kernel = SPLITS[case]
    with gs.trace() as t:
        parts = gs.split(on_device(array), sizes, axis=axis)
    for part, expected in zip(parts, np.split(array, np.cumsum(sizes)[:-1], axis=axis), strict=True):
        assert part.get().tobytes() == expected.tobytes()
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("cuda", kernel)]
    assert len(t.allocations) == (1 if len(sizes) > 8 else len(sizes))


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
    from test_onnx import CHAIN, CHAIN_CONSTANTS, model

    x = items(9, 60, 64, dtype="f4")
    with gs.trace() as t:
        results = Graph(model(CHAIN, ["x"], ["a", "c"], CHAIN_CONSTANTS)).run({"x": x})
    assert_same(results["a"], x[1:, :20, ::-1].copy())
    assert_same(results["c"], x[1:, 40:, ::-1].copy())
    assert [launch.kernel for launch in t.launches] == ["rows<4, -1>"]
    assert t.allocations == [results["a"].nbytes, results["c"].nbytes]


def test_what_kernels_cannot_take_numpy_copies():
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
def test_a_copy_goes_on_where_no_thread_can_be_started():
    """In a process of its own, which has no address space left for a thread's stack."""
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


def test_many_views_that_have_nothing_in_common():
    x = items(200_000)
    views = [x[: 20 * (k + 1) : k + 1] for k in range(2000)]
    for result, view in zip(gs.contiguous(views), views, strict=True):
        assert_same(result, view.copy())
    outs = [np.empty(1, np.uint8) for _ in range(3000)]
    assert gs.split(x[:3000], [1] * 3000, out=outs)[2999] == x[2999]


def test_without_kernels_numpy_does_it_all(monkeypatch):
    monkeypatch.setattr(host, "LIBRARY", None)
    assert host.instruction_set() == ""
    for make, _ in KERNELS.values():
        with gs.trace() as t:
            assert_same(gs.contiguous(make()), make().copy())
        assert [launch.executor for launch in t.launches] == ["numpy"]


def test_strided_and_unaligned_out():
    x = items(50, 60, dtype="u2")
    for out in (
        np.zeros((100, 60), "u2")[::2],
        np.zeros((60, 50), "u2").T,
        np.zeros(6001, "u1")[1:].view("u2").reshape(50, 60),
    ):
        assert_same(gs.contiguous(x[R, R], out=out).copy(), x[R, R].copy())


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


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_share_a_large_copy(monkeypatch, threads):
    monkeypatch.setenv("GPUSLICE_NUM_THREADS", threads)
    x = items(4100, 5000)
    assert_same(gs.contiguous(x[:, R]), x[:, R].copy())
    for part, expected in zip(gs.split(x, num_outputs=3, axis=1), np.split(x, [1667, 3334], axis=1), strict=True):
        assert_same(part, expected.copy())


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


@pytest.mark.parametrize("bits", [32, 64])
def test_division_by_magic_numbers(bits):
    top = 2 ** (bits - 1)
    for value in [*range(1, 300), 2**15 - 1, 2**15, 2**15 + 1, 10**6, top // 2 + 1, top - 1]:
        given, magic = divisor(value, bits)
        assert given == value
        assert 0 <= magic < 2**bits
        shift = (value - 1).bit_length()
        for n in [0, 1, value - 1, value, value + 1, 3 * value - 1, top // 3, top - 2, top - 1]:
            if 0 <= n < top:
                assert ((n * magic >> bits) + n) >> shift == n // value


def parts_of(shape, count):
    """Describe ``count`` rows of an imagined array."""
    return [Part(4096 + i, (shape[1] * count, count), 1 << 20, (shape[1], 1), shape) for i in range(count)]


def test_more_parts_than_a_table_holds_are_more_launches():
    (launch,), _ = plan(parts_of((5, 7), 3000), 1)
    assert [packed.capacity for packed in pack(launch, CUDA_32)] == [1152, 1152, 1152]
    assert [packed.capacity for packed in pack(launch, CUDA_64)] == [800, 800, 800, 800]
    assert [len(packed.launch.parts) for packed in pack(launch, CUDA_32)] == [1152, 1152, 696]
    assert [packed.capacity for packed in pack(launch, HOST)] == [3000]
    for dialect in (CUDA_32, CUDA_64):
        for packed in pack(launch, dialect):
            assert len(packed.fill([0] * 3000, [0] * 3000)) <= 32764
        (small,), _ = plan(parts_of((5, 7), dialect.capacities[-2]), 1)
        (packed,) = pack(small, dialect)
        assert len(packed.fill([0] * 3000, [0] * 3000)) <= 4096


def test_the_index_follows_the_span_and_not_the_size():
    def launch(stride):
        return plan([Part(0, (stride, 1), 0, (64, 1), (3, 64))], 1)[0][0]

    assert index_bits(launch(2**29)) == 32
    assert index_bits(launch(2**31)) == 64
    assert index_bits(launch(-(2**31))) == 64


def test_a_plan_is_integers_from_a_region():
    """A region, strides and a plan fit together without an array."""
    region = slice_region((10, 20), [9, 0], [-99, 20], [0, 1], [-1, 2])
    strides = tuple(stride * step for stride, step in zip((20, 1), region.step, strict=True))
    (launch,), _ = plan([Part(180, strides, 0, (10, 1), region.shape)], 1)
    assert (launch.kind, launch.width, launch.variant, launch.counts(0)) == ("rows", 1, 2, (10, 10))


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
