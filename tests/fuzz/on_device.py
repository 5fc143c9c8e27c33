"""Random views and splits through the public API on a CUDA device, every bit compared with NumPy's.

python tests/fuzz/on_device.py [--seed N] [--count N] [--seconds N] [--index-bits 64] [--no-pool]
"""

import argparse
import random
import time
from contextlib import contextmanager

import cupy
import numpy as np

import gpuslice as gs
from gpuslice.engine import cuda_kernels

DTYPES = ["u1", "u2", "u4", "u8", "c16"]
EXTENTS = [1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 300, 511]


@contextmanager
def index_bits(bits):
    """Have plans ask for kernels with an index of so many bits, which only spans of 2 GiB would need otherwise."""
    usual = cuda_kernels.layout
    cuda_kernels.layout = usual if bits is None else lambda _: usual(bits)
    gs.clear_caches()
    try:
        yield
    finally:
        cuda_kernels.layout = usual
        gs.clear_caches()


def draw_index(rng, shape):
    """Draw one slice per axis, of any step."""
    index = []
    for dim in shape:
        step = rng.choice([1, 1, 1, -1, -1, 2, -2, 3, -3, 4, 5, -7])
        start, stop = sorted(rng.sample(range(dim + 1), 2)) if rng.random() < 0.5 else (0, dim)
        index.append(slice(start, stop) if step > 0 else slice(stop - 1, start - 1 if start else None))
        index[-1] = slice(index[-1].start, index[-1].stop, step)
    return tuple(index)


def check_once(rng):
    """Try one view of one array, whole, transposed, into strided memory, and split."""
    dtype = np.dtype(rng.choice(DTYPES))
    shape = [rng.choice(EXTENTS) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.2:
        shape[-1] = rng.randrange(2, 5)  # interleaved channels
    bits = np.random.default_rng(rng.randrange(1 << 30)).integers(
        0, 256, int(np.prod(shape)) * dtype.itemsize, np.uint8
    )
    x = bits.view(dtype).reshape(shape)
    data, index = cupy.asarray(x), draw_index(rng, shape)
    for view, expected in ((data[index], x[index]), (data[index].T, x[index].T)):
        assert gs.contiguous(view).get().tobytes() == expected.tobytes(), (dtype, shape, index)
    view, expected = data[index], x[index]
    memory = cupy.zeros((*view.shape, 3), dtype)
    gs.contiguous(view, out=memory[..., 1])
    assert memory.get()[..., 1].tobytes() == expected.tobytes(), (dtype, shape, index, "strided")
    assert not any(memory.get()[..., ::2].tobytes()), (dtype, shape, index, "beside")
    axis = rng.randrange(view.ndim)
    cuts = sorted(rng.randrange(view.shape[axis] + 1) for _ in range(rng.choice([1, 2, 3, 9])))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, view.shape[axis]], strict=True)]
    for part, right in zip(gs.split(view, sizes, axis=axis), np.split(expected, cuts, axis), strict=True):
        assert part.get().tobytes() == right.tobytes(), (dtype, shape, index, sizes, axis)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after so long, however many there were"
    )
    parser.add_argument(
        "--no-pool", action="store_true", help="one allocation per array, so that tools see the end of each"
    )
    parser.add_argument("--index-bits", type=int, choices=(32, 64), help="of the kernels, however small the arrays are")
    given = parser.parse_args()
    if given.no_pool:
        cupy.cuda.set_allocator(None)
    rng = random.Random(given.seed)
    with index_bits(given.index_bits):
        began, count = time.monotonic(), 0
        while count < given.count and time.monotonic() - began < given.seconds:
            check_once(rng)
            count += 1
    cupy.cuda.Device().synchronize()
    print(f"{count} arrays, seed {given.seed}: no difference")


if __name__ == "__main__":
    main()
