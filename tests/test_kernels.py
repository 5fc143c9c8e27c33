"""Which kernel copies which view, in how many launches, and that every item is right; on the host and on CUDA."""

import numpy as np
import pytest
from helpers import assert_same, compiled, items, on_device, pick

import gpuslice as gs
from gpuslice.engine import host_library

pytestmark = pytest.mark.usefixtures("kernels_from_512_bytes")

R = slice(None, None, -1)
# A view and the kernel that copies it.
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
    "reversed channels": (lambda: items(40, 64, 3)[..., R], "rearranged<1, 3>"),
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


def test_without_kernels_numpy_copies_everything(monkeypatch):
    monkeypatch.setattr(host_library, "LIBRARY", None)
    assert host_library.instruction_set() == ""
    for make, _ in KERNELS.values():
        with gs.trace() as t:
            assert_same(gs.contiguous(make()), make().copy())
        assert [launch.executor for launch in t.launches] == ["numpy"]


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
    "uneven, of transposed in 3-D": (items(70, 6, 80).transpose(2, 1, 0), 1, [1, 2, 3], "rows<1, 0>"),
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


@compiled
def test_a_channel_twice_is_not_planes():
    stereo = items(4000, 2, dtype="i2")
    with gs.trace() as t:
        results = gs.contiguous([stereo[:, 0], stereo[:, 0]])
    for result in results:
        assert_same(result, stereo[:, 0].copy())
    assert {launch.kernel for launch in t.launches} == {"rows<2, 2>"}


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
