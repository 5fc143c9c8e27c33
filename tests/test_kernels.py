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
    "every second pixel of four channels": (lambda: items(40, 128, 4)[::2, ::2], "rows<4, 0>"),
    "every fifth word": (lambda: items(16384, dtype="u4")[::5], "rows<4, 0>"),
    "every second complex128": (lambda: items(1024, dtype="c16")[::2], "rows<16, 0>"),
    "transposed bytes": (lambda: items(80, 70).T, "tiles<1, 0>"),
    "transposed words, backward": (lambda: items(80, 70, dtype="u4").T[R, R], "tiles<4, 0>"),
    "transposed pixels": (lambda: items(40, 64, 3).transpose(1, 0, 2), "pixel_tiles<1, 3>"),
    "pixels turned right": (lambda: items(41, 63, 3).transpose(1, 0, 2)[:, R], "pixel_tiles<1, 3>"),
    "pixels turned left, channels reversed": (
        lambda: items(41, 63, 3).transpose(1, 0, 2)[R, :, R], "pixel_tiles<1, 3>"
    ),
    "transposed pixels of halves": (lambda: items(41, 63, 3, dtype="u2").transpose(1, 0, 2)[..., R], "pixel_tiles<2, 3>"),
    "transposed pixels of words": (lambda: items(41, 63, 3, dtype="u4").transpose(1, 0, 2), "pixel_tiles<4, 3>"),
    "transposed, four channels reversed": (lambda: items(41, 63, 4).transpose(1, 0, 2)[..., R], "pixel_tiles<1, 0>"),
    "transposed pixels of doubles": (lambda: items(41, 63, 3, dtype="f8").transpose(1, 0, 2), "pixel_tiles<8, 0>"),
    "transposed 5-byte items": (lambda: items(41, 63, dtype="V5").T, "pixel_tiles<1, 0>"),
    "transposed 48-byte items": (lambda: items(41, 63, dtype="V48").T, "pixel_tiles<8, 0>"),
    "images of a batch, transposed": (lambda: items(2, 41, 63, 3).transpose(0, 2, 1, 3), "pixel_tiles<1, 3>"),
    "every second pixel": (lambda: items(40, 128, 3)[::2, ::2], "pixel_rows<1, 2>"),
    "every second pixel, misaligned": (lambda: items(40, 129, 3)[1::2, 1::2], "pixel_rows<1, 2>"),
    "every third pixel, backward": (lambda: items(40, 128, 3)[::-3, ::-3], "pixel_rows<1, 0>"),
    "every second pixel of halves": (lambda: items(40, 128, 3, dtype="u2")[:, ::2], "pixel_rows<2, 2>"),
    "every second pixel of words": (lambda: items(40, 128, 3, dtype="u4")[:, ::2], "pixel_rows<4, 2>"),
    "every fourth pixel of words": (lambda: items(40, 128, 3, dtype="u4")[:, ::4], "pixel_rows<4, 0>"),
    "a column of pixels": (lambda: items(300, 31, 3)[:, 7], "pixel_rows<1, 0>"),
    "every second 6-byte item": (lambda: items(4096, dtype="V6")[::2], "pixel_rows<2, 2>"),
    "reversed channels": (lambda: items(40, 64, 3)[..., R], "rearranged<1, 3>"),
    "mirrored pixels": (lambda: items(40, 64, 3)[:, R], "rearranged<1, -3>"),
    "mirrored pixels of halves": (lambda: items(40, 64, 3, dtype="u2")[:, R], "rearranged<2, -3>"),
    "3-byte items": (lambda: items(4096, dtype="V3")[R], "rearranged<1, -3>"),
    "6-byte items": (lambda: items(4096, dtype="V6")[R], "rearranged<2, -3>"),
    "48-byte items": (lambda: items(400, dtype="V48")[R], "rows<16, 1>"),
    "gray as RGB": (lambda: np.broadcast_to(items(90, 100, 1), (90, 100, 3)), "interleaved<1, 3>"),
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


def channels(image):
    """Return a view of each channel."""
    return [image[..., i] for i in range(image.shape[-1])]


LARGE = 9 << 20  # bytes, which go past the caches
IMAGE = items(LARGE // 3000, 1000, 3)
# Views that are copied together, and the kernel that copies them. Runs are of whole pages, longer, or odd.
PAST_THE_CACHES = {
    "contiguous": (lambda: [items(LARGE + 1)[1:]], "rows<1, 1>"),
    "reversed": (lambda: [items(LARGE + 1)[R]], "rows<1, -1>"),
    "reversed words": (lambda: [items(LARGE // 4 + 1, dtype="u4")[R]], "rows<4, -1>"),
    "reversed rows": (lambda: [items(LARGE // 40_000, 40_000)[:, R]], "rows<1, -1>"),
    "crop": (lambda: [items(LARGE // 4096, 4224)[1:, 3:-5]], "rows<1, 1>"),
    "transposed": (lambda: [items(3001, 3100).T], "tiles<1, 0>"),
    "transposed halves": (lambda: [items(2001, 2400, dtype="u2").T], "tiles<2, 0>"),
    "planes": (lambda: channels(IMAGE), "planes<1, 3>"),
    "planes, mirrored": (lambda: channels(IMAGE[:, R]), "planes<1, -3>"),
    "planes of a crop": (lambda: channels(np.tile(IMAGE, (1, 2, 1))[:, 1:-3]), "planes<1, 3>"),
    "four planes of words": (lambda: channels(items(LARGE // 16, 4, dtype="u4")), "planes<4, 4>"),
    "stereo": (lambda: channels(items(LARGE // 4, 2, dtype="u2")), "planes<2, 2>"),
    "20 columns": (lambda: channels(items(LARGE // 20, 20)), "unstacked<1, 0>"),
    "mirrored pixels": (lambda: [IMAGE[:, R]], "rearranged<1, -3>"),
    "from planes": (lambda: [items(3, LARGE // 3).T], "interleaved<1, 3>"),
}  # fmt: skip


@compiled
@pytest.mark.parametrize("case", PAST_THE_CACHES)
def test_large_targets_anywhere_in_a_line(case):
    """Targets of which whole cache lines go past the caches begin anywhere in a line."""
    make, kernel = PAST_THE_CACHES[case]
    views = make()
    size = views[0].itemsize
    for lead in (0, size, 16, 48):
        buffers = [np.zeros(view.nbytes + 128, np.uint8) for view in views]
        outs = []
        for i, (view, buffer) in enumerate(zip(views, buffers, strict=True)):
            start = -buffer.ctypes.data % 64 + (lead + 16 * i * (lead > 16)) % 64
            outs.append(buffer[start : start + view.nbytes].view(view.dtype).reshape(view.shape))
        with gs.trace() as t:
            gs.contiguous(views, out=outs)
        for view, out, buffer in zip(views, outs, buffers, strict=True):
            assert np.array_equal(view, out)
            around = buffer.copy()
            around[out.ctypes.data - buffer.ctypes.data :][: out.nbytes] = 0
            assert not around.any()
        assert {launch.kernel for launch in t.launches} == {kernel}


# Views of so many items, and the kernel that copies them: runs of about the length from which whole lines are written,
# and targets of tiles that are written directly or, since their rows would share sets of the cache, by way of memory.
IN_THE_CACHES = {
    "forward": (lambda n: items(n + 5)[5:], "rows<1, 1>"),
    "backward": (lambda n: items(n)[R], "rows<1, -1>"),
    "words": (lambda n: items(n, dtype="u4")[R], "rows<4, -1>"),
    "wide": (lambda n: items(n, dtype="c16")[R], "rows<16, -1>"),
    "step 2": (lambda n: items(2 * n)[::2], "rows<1, 2>"),
    "step -3": (lambda n: items(3 * n, dtype="u2")[::-3], "rows<2, -3>"),
    "step 7": (lambda n: items(7 * n, dtype="u8")[::7], "rows<8, 0>"),
    "rows": (lambda n: items(4, n + 3)[:, n:0:-1], "rows<1, -1>"),
    "mirrored pixels": (lambda n: items(n, 4)[:, R], "rearranged<1, 4>"),
    "pixels backward": (lambda n: items(n, 3, dtype="u2")[R], "rearranged<2, -3>"),
    "tiles": (lambda n: items(n, 65).T, "tiles<1, 0>"),
    "tiles of wide items": (lambda n: items(n, 33, dtype="u8").T, "tiles<8, 0>"),
    "tiles, few sets": (lambda n: items(1024, 20 + n % 7, dtype="u2").T, "tiles<2, 0>"),
}  # fmt: skip


@compiled
@pytest.mark.parametrize("case", IN_THE_CACHES)
def test_targets_anywhere_in_a_line(case, kernels_for_all):
    """Runs are moved by whole cache lines of the target, wherever in a line it begins and ends."""
    make, kernel = IN_THE_CACHES[case]
    kernels = set()
    for count in (31, 63, 64, 127, 128, 129, 255, 256, 257, 511, 512, 513, 575, 1000):
        view = make(count)
        for lead in range(0, 64, min(view.itemsize, 8)):
            buffer = np.zeros(view.nbytes + 192, np.uint8)
            start = -buffer.ctypes.data % 64 + lead
            out = buffer[start : start + view.nbytes].view(view.dtype).reshape(view.shape)
            with gs.trace() as t:
                gs.contiguous(view, out=out)
            kernels |= {launch.kernel for launch in t.launches}
            assert np.array_equal(out.view(np.uint8), np.ascontiguousarray(view).view(np.uint8))
            buffer[start : start + view.nbytes] = 0
            assert not buffer.any()
    assert kernel in kernels


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
    "8 inside": (items(64, 96), 1, [12] * 8, "pixel_rows<4, 0>"),
    "8 inside, backward": (items(64, 96)[:, R], 1, [12] * 8, "rows<1, -1>"),
    "uneven, a single and an empty one": (items(64, 96), 1, [30, 1, 0, 60, 5], "rows<1, 1>"),
    "uneven, outside": (items(64, 192)[R, ::2], 0, [30, 1, 0, 28, 5], "rows<1, 2>"),
    "1,000 inside": (items(16, 1000), 1, [1] * 1000, "unstacked<1, 0>"),
    "1,000 outside": (items(1000, 16), 0, [1] * 1000, "rows<16, 1>"),
    "5 columns of bytes": (items(700, 5), 1, [1] * 5, "unstacked<1, 0>"),
    "5 columns of 8": (items(300, 8)[:, 1:6], 1, [1] * 5, "unstacked<1, 0>"),
    "9 columns of a batch, upside down": (items(2, 300, 9, dtype="u2")[:, R], 2, [1] * 9, "unstacked<2, 0>"),
    "4 columns of complex128": (items(300, 4, dtype="c16"), 1, [1] * 4, "unstacked<16, 0>"),
    "17 columns, misaligned": (items(700 * 17 + 3)[3:].reshape(700, 17), 1, [1] * 17, "unstacked<1, 0>"),
    "columns in reverse order": (items(700, 9)[:, R], 1, [1] * 9, "rows<1, 0>"),
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


RGBA = items(48, 64, 4)
GREY = items(3, 48, 64)
APART = [np.array(plane) for plane in GREY]
# The arrays, the axis they are joined along, and the kernel.
JOINS = {
    "planes of one array": (lambda: list(GREY[..., None]), "interleaved<1, 3>"),
    "planes apart": (lambda: [plane[..., None] for plane in APART], "interleaved<1, 3>"),
    "planes, mirrored": (lambda: [plane[:, R, None] for plane in APART], "interleaved<1, -3>"),
    "planes, upside down": (lambda: [plane[R, :, None] for plane in APART], "interleaved<1, 3>"),
    "planes, cropped": (lambda: [plane[1:47, 3:50, None] for plane in APART], "interleaved<1, 3>"),
    "words": (lambda: [items(48, 64, dtype="u4")[..., None] for _ in range(4)], "interleaved<4, 4>"),
    "pairs": (lambda: [items(48, 64, dtype="c16")[..., None] for _ in range(2)], "interleaved<16, 2>"),
    "5 planes": (lambda: [items(48, 63)[..., None] for _ in range(5)], "stacked<1, 0>"),
    "15 planes, cropped": (lambda: [items(48, 64)[1:47, 3:50, None] for _ in range(15)], "stacked<1, 0>"),
    "8 planes of words, mirrored": (lambda: [items(48, 64, dtype="u4")[:, R, None] for _ in range(8)], "stacked<4, 0>"),
    "100 columns": (lambda: [items(301, 1) + i for i in range(100)], "stacked<1, 0>"),
    "1,100 columns": (lambda: [items(33, 1, dtype="u2") + i for i in range(1100)], "stacked<2, 0>"),
    "colours and one more": (lambda: [RGB, RGBA[..., 3:].copy()], "interleaved<1, 31>"),
    "one more and colours, mirrored": (lambda: [RGBA[:, R, 3:].copy()[:, R], RGB[:, R]], "interleaved<1, -13>"),
    "two and two": (lambda: [RGBA[..., :2].copy(), RGBA[..., 2:].copy()], "interleaved<2, 2>"),
}
REORDERED = {
    "to planes": (lambda: RGB.transpose(2, 0, 1), "planes<1, 3>"),
    "to planes, channels reversed": (lambda: RGB[..., R].transpose(2, 0, 1), "planes<1, 3>"),
    "to planes, mirrored and cropped": (lambda: RGB[1:, 40:3:-1].transpose(2, 0, 1), "planes<1, -3>"),
    "several to planes": (lambda: items(3, 48, 64, 4).transpose(0, 3, 1, 2), "planes<1, 4>"),
    "from planes": (lambda: GREY.transpose(1, 2, 0), "interleaved<1, 3>"),
    "from planes, channels reversed": (lambda: GREY[R].transpose(1, 2, 0), "interleaved<1, 3>"),
    "from planes, mirrored and cropped": (lambda: GREY[:, 1:, 40:3:-1].transpose(1, 2, 0), "interleaved<1, -3>"),
    "several from planes": (lambda: items(2, 4, 48, 64).transpose(0, 2, 3, 1), "interleaved<1, 4>"),
}


@compiled
@pytest.mark.parametrize("case", JOINS)
def test_channels_are_joined_in_one_launch(case, kernels_for_all):
    make, kernel = JOINS[case]
    arrays = make()
    with gs.trace() as t:
        result = gs.concat_from_sequence(arrays, axis=-1)
    assert_same(result, np.concatenate(arrays, axis=-1))
    assert [launch.kernel for launch in t.launches] == [kernel]
    assert t.launches[0].bytes_read == t.launches[0].bytes_written == result.nbytes


@compiled
@pytest.mark.parametrize("case", REORDERED)
def test_channels_of_one_array_are_reordered_in_one_launch(case, kernels_for_all):
    make, kernel = REORDERED[case]
    view = make()
    with gs.trace() as t:
        result = gs.contiguous(view)
    assert_same(result, np.ascontiguousarray(view))
    assert [launch.kernel for launch in t.launches] == [kernel]
    assert t.launches[0].bytes_read == t.launches[0].bytes_written == view.nbytes


@compiled
def test_three_channels_and_one_are_apart():
    with gs.trace() as t:
        colours, alpha = gs.split(np.tile(RGBA, (4, 4, 1)), [3, 1], axis=2)
    assert_same(colours, np.tile(RGBA, (4, 4, 1))[..., :3].copy())
    assert_same(alpha, np.tile(RGBA, (4, 4, 1))[..., 3:].copy())
    assert [launch.kernel for launch in t.launches] == ["planes<1, 31>"]


@compiled
def test_neighbours_of_one_call_are_apart_in_the_next(kernels_for_all):
    """A plan is kept; whether targets are channels of one array is part of what it is kept for."""
    sources = [items(64, 65), items(64, 65)[R]]
    pixels, planes = np.zeros((64, 65, 2), np.uint8), [np.zeros((64, 65, 2), np.uint8) for _ in range(2)]
    for targets in ([pixels[..., 0], pixels[..., 1]], [planes[0][..., 0], planes[1][..., 1]]):
        for _ in range(2):
            gs.contiguous(sources, out=targets)
            for source, target in zip(sources, targets, strict=True):
                assert np.array_equal(source, target)


@compiled
def test_many_neighbours_are_not_mistaken(kernels_for_all):
    """Columns of one array, and others that begin at the same places in a vector; a plan holds for one of them only."""
    buffer = items(1 << 16)
    buffer = buffer[-buffer.ctypes.data % 16 :]
    for distance in (1, 4097, 1):
        columns = [buffer[i * distance :][: 6 * 500 : 6] for i in range(6)]
        with gs.trace() as t:
            results = gs.contiguous(columns)
        for result, column in zip(results, columns, strict=True):
            assert_same(result, column.copy())
        assert [launch.kernel for launch in t.launches] == ["unstacked<1, 0>" if distance == 1 else "rows<1, 0>"]


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
@pytest.mark.parametrize("case", JOINS)
def test_channels_are_joined_in_one_launch_on_cuda(case):
    make, kernel = JOINS[case]
    arrays = make()
    with gs.trace() as t:
        result = gs.concat_from_sequence([on_device(array) for array in arrays], axis=-1)
    assert result.get().tobytes() == np.concatenate(arrays, axis=-1).tobytes()
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("cuda", kernel)]


@pytest.mark.gpu
@pytest.mark.parametrize("case", REORDERED)
def test_channels_of_one_array_are_reordered_on_cuda(case):
    make, kernel = REORDERED[case]
    view = make()
    with gs.trace() as t:
        result = gs.contiguous(on_device(view))
    assert result.get().tobytes() == view.tobytes()
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("cuda", kernel)]


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
