"""The one list of kernels: plans name nothing else, something names each, and the executors know them all."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuslice as gs
from gpuslice.engine import choice, host
from gpuslice.engine.packing import CUDA_32, CUDA_64, all_instantiations, instantiation, pack
from gpuslice.engine.plan import Part, all_kernels, plan

KERNELS = list(all_kernels())
INSTANTIATIONS = set(all_instantiations())
EMULATOR = Path(__file__).parent / "fuzz" / "emulate.cpp"
COUNT = 5001  # odd, so that no two items of a run become one; and enough for the host's kernels


def parts_of(views):
    """Describe views with contiguous targets that lie apart from each other."""
    targets = [np.empty(view.shape, view.dtype) for view in views]
    return [
        Part(view.__array_interface__["data"][0], view.strides, target.ctypes.data, target.strides, view.shape)
        for view, target in zip(views, targets, strict=True)
    ]


def views_for(kind, width, variant):
    """Make views that the kernel should move."""
    dtype, far = np.dtype(f"V{width}"), abs(variant)
    items = np.random.default_rng(0).integers(0, 256, width * (COUNT * 5 + 1), np.uint8).view(dtype)
    if kind == "rows":
        return [items[: COUNT * 5][:: variant or 5][:COUNT]]
    if kind == "tiles":
        return [items[: 75 * 65].reshape(75, 65).T]
    pixels = items[1 : 1 + COUNT * far].reshape(COUNT, far)  # begins at an odd item, so that none become one
    if kind == "planes":
        return [pixels[:: 1 if variant > 0 else -1, i] for i in range(far)]
    return [pixels[:, ::-1] if variant > 0 else pixels[::-1]]


def test_the_list_names_nothing_twice():
    assert len(set(KERNELS)) == len(KERNELS) == 68
    names = [instantiation(*given) for given in all_instantiations()]
    assert len(set(names)) == len(names) == 436
    assert "gpuslice::rearranged<unsigned long long, 800, 1, -3>" in names


@pytest.mark.parametrize(("kind", "width", "variant"), KERNELS)
def test_a_plan_reaches_each(kind, width, variant, monkeypatch):
    monkeypatch.setattr(choice, "SMALL_BYTES", 0)  # what NumPy is quicker with is for the kernels too
    views = views_for(kind, width, variant)
    (launch,), left = plan(parts_of(views), width)
    assert (launch.kind, launch.width, launch.variant, left) == (kind, width, variant, [])
    if host.LIBRARY is None:
        return
    with gs.trace() as t:
        results = gs.contiguous(views)
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("host", f"{kind}<{width}, {variant}>")]
    assert [result.tobytes() for result in results] == [view.tobytes() for view in views]


@st.composite
def groups(draw):
    """Draw parts, and the size of their items: pieces of one view of any strides, along any axis."""
    itemsize = draw(st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 48]))
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 16, 17, 33, 64, 65]), min_size=1, max_size=4))
    strides, step = [0] * len(shape), itemsize
    inwards = list(reversed(range(len(shape))))
    for axis in draw(st.just(inwards) | st.permutations(inwards)):
        strides[axis] = step * draw(st.sampled_from([1, 1, 1, 1, 2, 3, 4, 5])) * draw(st.sampled_from([1, 1, -1]))
        step *= shape[axis]
    axis = draw(st.integers(0, len(shape) - 1))
    count = draw(st.sampled_from([1, 1, shape[axis]]))
    shape[axis] //= count
    gap = draw(st.sampled_from([1, 1, 2]))  # between the items of a target
    flat = [gap * stride for stride in np.empty(shape, f"V{itemsize}").strides]
    unit = draw(st.sampled_from([1, 2, 4, 16]))
    source, target = 2**20 + draw(st.integers(0, 15)) * unit, 2**30 + draw(st.integers(0, 3)) * unit
    starts = [(source + i * strides[axis], target + i * 2**24) for i in range(count)]
    return [Part(at, tuple(strides), to, tuple(flat), tuple(shape)) for at, to in starts], itemsize


@settings(max_examples=600, deadline=None)
@given(groups())
def test_plans_name_nothing_else(drawn):
    parts, itemsize = drawn
    launches, _ = plan(parts, itemsize)
    for launch in launches:
        assert (launch.kind, launch.width, launch.variant) in KERNELS
        for packed in (*pack(launch, CUDA_32), *pack(launch, CUDA_64)):
            name = (launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity)
            assert name in INSTANTIATIONS


def test_the_emulator_knows_each():
    """The table of tests/fuzz/emulate.cpp is written out, since C++ has no list of ours."""
    text = EMULATOR.read_text()
    known = set()
    for width, steps in re.findall(r"add_rows<Index, Capacity, (\d+), ([^>]*)>\(\)", text):
        known |= {("rows", int(width), int(step)) for step in steps.split(",")}
    known |= {("tiles", int(width), 0) for width in re.findall(r"add_tiles<Index, Capacity, (\d+)>\(\)", text)}
    for width, channels in re.findall(r"add_pixels<Index, Capacity, (\d+), (-?\d+)>\(\)", text):
        known |= {(kind, int(width), int(channels)) for kind in ("planes", "rearranged")}
    assert known == set(KERNELS)
    capacities = re.findall(r"add_few<(unsigned(?: long long)?), (\d+)>\(\)", text)
    assert {(64 if "long" in index else 32, int(capacity)) for index, capacity in capacities} <= {
        name[3:] for name in INSTANTIATIONS
    }
