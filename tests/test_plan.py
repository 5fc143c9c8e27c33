"""Plans and their parameters, in integers: no array is needed."""

import pytest

from gpuslice.engine.plan import CUDA_32, CUDA_64, CUDA_TUNING, HOST_64, HOST_TUNING, Part, index_bits, pack, plan
from gpuslice.engine.plan.layout import divisor
from gpuslice.rules import slice_region


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
    """Return ``count`` parts that share their strides, of an array that does not exist."""
    return [Part(4096 + i, (shape[1] * count, count), 1 << 20, (shape[1], 1), shape) for i in range(count)]


def test_more_parts_than_a_table_holds_are_more_launches():
    (launch,), _ = plan(parts_of((5, 7), 3000), 1)
    assert [packed.capacity for packed in pack(launch, CUDA_32, CUDA_TUNING)] == [1152, 1152, 1152]
    assert [packed.capacity for packed in pack(launch, CUDA_64, CUDA_TUNING)] == [800, 800, 800, 800]
    assert [len(packed.launch.parts) for packed in pack(launch, CUDA_32, CUDA_TUNING)] == [1152, 1152, 696]
    assert [packed.capacity for packed in pack(launch, HOST_64, HOST_TUNING)] == [3000]
    for layout in (CUDA_32, CUDA_64):
        for packed in pack(launch, layout, CUDA_TUNING):
            assert len(packed.fill([0] * 3000, [0] * 3000)) <= 32764
        for packed in pack(launch, layout.in_small_parameters(), CUDA_TUNING):
            assert len(packed.fill([0] * 3000, [0] * 3000)) <= 4096
        (small,), _ = plan(parts_of((5, 7), layout.capacities[-2]), 1)
        (packed,) = pack(small, layout, CUDA_TUNING)
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
