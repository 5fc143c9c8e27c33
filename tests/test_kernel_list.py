"""The one list of kernels, kernels/shared.h: how it is read, and that plans and executors have no other kernels."""

import shutil
import subprocess

import numpy as np
import pytest
from helpers import JOINED_KINDS, bytes_of_copied, copied, views_for
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuslice as gs
from gpuslice.engine import host_library
from gpuslice.engine.plan import (
    CUDA_32,
    CUDA_64,
    CUDA_TUNING,
    HOST_64,
    HOST_TUNING,
    KERNELS,
    Kernel,
    LaunchPlan,
    Part,
    all_instantiations,
    instantiation,
    kernel_sources,
    pack,
    plan,
)
from gpuslice.engine.plan.parts import Axis

INSTANTIATIONS = set(all_instantiations())


def parts_of(views, *, joined=False):
    """Describe views with contiguous targets that lie apart from each other, or side by side in one array."""
    if joined:
        whole = np.empty((len(views[0]), sum(view.shape[1] for view in views)), views[0].dtype)
        targets = np.split(whole, np.cumsum([view.shape[1] for view in views])[:-1], axis=1)
    else:
        targets = [np.empty(view.shape, view.dtype) for view in views]
    return [
        Part(view.__array_interface__["data"][0], view.strides, target.ctypes.data, target.strides, view.shape)
        for view, target in zip(views, targets, strict=True)
    ]


def shared(kernels="{kRows, 1, 0},", more=""):
    """Write a small shared.h."""
    return f"""// About it.
#pragma once
namespace gpuslice {{
constexpr int kVectorBytes = 16;  // of a vector
constexpr int kSizes[] = {{1, 8, 128}};
enum Kind {{ kRows, kTiles, kPixelTiles }};
struct Kernel {{
  Kind kind;
  int width;
  int variant;
}};
{more}
constexpr Kernel kKernels[] = {{
  {kernels}
}};
}}  // namespace gpuslice
"""


def test_shared_numbers_are_read():
    found = kernel_sources.read_shared(
        shared("{kRows, 1, 0}, {kRows, 2, -3},\n  {kTiles, 16, 0}, {kPixelTiles, 1, 3},")
    )
    assert found.numbers == {"kVectorBytes": 16}
    assert found.arrays == {"kSizes": (1, 8, 128)}
    assert found.kernels == (("rows", 1, 0), ("rows", 2, -3), ("tiles", 16, 0), ("pixel_tiles", 1, 3))
    assert found.kernels[1].name == "rows<2, -3>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (shared("{kRows, 1, 0}, {kRows, 1, 0}"), r"lists rows<1, 0> twice"),
        (shared("{kColumns, 1, 0}"), r"no kernel is '{kColumns"),
        (shared("{kRows, 1}"), r"no kernel is '{kRows, 1}"),
        (shared(more="constexpr int kHalf = kVectorBytes / 2;"), r"cannot read 'constexpr int kHalf"),
        (shared(more="#define SIXTEEN 16"), r"cannot read '#define SIXTEEN"),
        (shared(more="constexpr int kSizes32[] = {1, k};"), r"cannot read 'constexpr int kSizes32"),
        ("constexpr int kVectorBytes = 16;", r"must hold one namespace"),
    ],
)
def test_other_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        kernel_sources.read_shared(text)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ says what C++ reads")
def test_cpp_reads_the_same(tmp_path):
    program = """#include <cstdio>
#include "shared.h"
using namespace gpuslice;
int main() {
  const char* kinds[] = {"rows", "planes", "interleaved", "rearranged", "tiles", "pixel_tiles", "pixel_rows",
                         "unstacked", "stacked"};
  for (Kernel k : kKernels) printf("%s<%d, %d>\\n", kinds[k.kind], k.width, k.variant);
  printf("%d %d %d %d %d\\n", kVectorBytes, kMaxRank, kLineBytes, kHeaderBytes32, kHeaderBytes64);
}
"""
    (tmp_path / "list.cpp").write_text(program)
    compiler = [
        "g++",
        "-std=c++20",
        f"-I{kernel_sources.folder()}",
        str(tmp_path / "list.cpp"),
        "-o",
        str(tmp_path / "list"),
    ]
    subprocess.run(compiler, check=True)
    *names, numbers = subprocess.check_output([tmp_path / "list"], text=True).splitlines()
    assert names == [kernel.name for kernel in KERNELS]
    expected = [
        kernel_sources.VECTOR_BYTES,
        kernel_sources.MAX_RANK,
        kernel_sources.LINE_BYTES,
        *kernel_sources.HEADER_BYTES.values(),
    ]
    assert numbers == " ".join(map(str, expected))


def test_instantiations_are_named_once():
    names = [instantiation(*given) for given in all_instantiations()]
    assert len(set(names)) == len(names)
    assert "gpuslice::rearranged<unsigned long long, 800, 1, -3>" in names
    assert {name[:3] for name in INSTANTIATIONS} == set(KERNELS)


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])
def test_a_plan_reaches_each(kernel, kernels_for_all):
    views = views_for(kernel)
    (launch,), left = plan(parts_of(views, joined=kernel.kind in JOINED_KINDS), kernel.width)
    assert (launch.kernel, left) == (kernel, [])
    if host_library.LIBRARY is None:
        return
    with gs.trace() as t:
        results = copied(kernel, views)
    assert [(launch.executor, launch.kernel) for launch in t.launches] == [("host", kernel.name)]
    assert [result.tobytes() for result in results] == bytes_of_copied(kernel, views)


def test_an_unknown_kernel_is_an_error():
    unknown = LaunchPlan("rows", 1, 99, (Axis((64,), 99, 1),), True, (0,))
    with pytest.raises(LookupError, match="rows<1, 99>"):
        pack(unknown, HOST_64, HOST_TUNING)
    with pytest.raises(LookupError, match="columns<1, 1>"):
        kernel_sources.kernel_number(Kernel("columns", 1, 1))


@pytest.mark.skipif(host_library.LIBRARY is None, reason="the host kernels are not built here")
@pytest.mark.parametrize("number", [len(KERNELS), 2**31])
def test_the_library_refuses_an_unknown_kernel(number):
    (launch,), _ = plan(parts_of([np.zeros(64, np.uint8)]), 1)
    (packed,) = pack(launch, HOST_64, HOST_TUNING)
    with pytest.raises(RuntimeError, match=rf"no kernel number {number}"):
        host_library.copy(number, packed.fill([0], [0]), packed.blocks, 1)


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
        assert launch.kernel in KERNELS
        for packed in (*pack(launch, CUDA_32, CUDA_TUNING), *pack(launch, CUDA_64, CUDA_TUNING)):
            name = (launch.kind, launch.width, launch.variant, packed.index_bits, packed.capacity)
            assert name in INSTANTIATIONS
