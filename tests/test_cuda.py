"""What only CUDA has: streams, capture, devices, memory, parameters of launches, and kernels that do not compile."""

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    all_on_device,
    assert_same,
    bytes_of_copied,
    copied,
    items,
    model,
    node,
    on_device,
    sequence_info,
    tensor_info,
    views_for,
)

import gpuslice as gs
from gpuslice.engine.plan import KERNELS, Layout, all_instantiations
from gpuslice.engine.plan.kernel_sources import TOGETHER_KINDS
from gpuslice.versions import newest

pytestmark = pytest.mark.gpu

R = slice(None, None, -1)
ALL = list(all_instantiations())


@pytest.fixture
def cp():
    """CuPy, imported only if a test runs."""
    import cupy

    return cupy


@pytest.fixture
def cuda(cp):
    """The module of the executor. Plans of a test that changes it are forgotten."""
    from gpuslice.engine import cuda

    yield cuda
    gs.clear_caches()


@pytest.fixture
def kernels(cp):
    """The module that compiles. Plans and loaded kernels of a test that changes it are forgotten."""
    from gpuslice.engine import cuda_kernels

    cuda_kernels.compiled.cache_clear()
    yield cuda_kernels
    cuda_kernels.compiled.cache_clear()
    gs.clear_caches()


def backward(data, out=None):
    """Return a copy with the last axis reversed."""
    return gs.slice(data, [-1], [-(1 << 40)], [-1], [-1], out=out)


@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "u4", "f8", "c8", "c16", "bfloat16"])
def test_every_width_of_item(cp, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x = items(3, 500, np.dtype(dtype).itemsize).view(dtype)[..., 0] if dtype != "?" else items(3, 500) > 127
    for view in (x, x[:, R], x[:, ::3], x[:, 7:], x.T):
        with gs.trace() as t:
            result = gs.contiguous(on_device(view))
        assert_same(result, np.ascontiguousarray(view), like=cp.asarray(view))
        assert [launch.executor for launch in t.launches] == ["cuda"]


# A dtype of each width that CuPy has.
DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


@pytest.fixture(scope="module")
def all_compiled():
    """Compile everything that a launch on CUDA can ask for, in threads, so that the tests below do not wait long."""
    from gpuslice.engine import cuda_kernels

    cuda_kernels.compile_all(cuda_kernels.Wanted(*one, 0) for one in ALL)


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])
def test_every_kernel_with_every_index_and_table(kernel, all_compiled, monkeypatch):
    """As each instantiation, with small arrays: the layout of the parameters says which one a launch asks for."""
    from gpuslice.engine import cuda, cuda_kernels

    views = [view.view(DTYPES[kernel.width]) for view in views_for(kernel)]
    data, asked = all_on_device(views), []

    def compiled(*name):
        asked.append(name[:-1])
        return cuda_kernels.compiled(*name)

    monkeypatch.setattr(cuda, "compiled", compiled)
    mine = sorted(one for one in ALL if one[:3] == kernel)
    for _, _, _, bits, capacity in mine:
        gs.clear_caches()
        layout = Layout(bits, (capacity,))
        monkeypatch.setattr(cuda_kernels, "layout", lambda _, layout=layout: layout)
        repeats = 1 if kernel.kind in TOGETHER_KINDS else min(3, capacity)
        results = copied(kernel, data * repeats)
        assert [result.get().tobytes() for result in results] == bytes_of_copied(kernel, views) * repeats
    gs.clear_caches()
    assert list(dict.fromkeys(asked)) == mine  # more arrays than tables hold are several launches


def test_captured_copies_read_the_current_items(cp):
    """Capturing copies nothing, and calls between two replays do not change the captured parameters."""
    x, y = cp.asarray(items(64, 256)), cp.asarray(items(40, 1000, dtype="u4"))
    out, other = cp.empty_like(x), cp.empty_like(y)
    parts = [cp.empty((64, n), cp.uint8) for n in (100, 1, 155)]
    gs.split(x, [100, 1, 155], axis=1, out=parts)
    backward(x, out=out)  # kernels are compiled before they are captured
    out[...] = 0
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        backward(x, out=out)
        gs.split(x, [100, 1, 155], axis=1, out=parts)
        graph = stream.end_capture()
    assert not out.get().any()
    for seed in (1, 2):
        fresh = np.random.default_rng(seed).integers(0, 256, x.shape, np.uint8)
        x.set(fresh)
        cp.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        assert_same(out, np.ascontiguousarray(fresh[:, R]), like=x)
        for part, expected in zip(parts, np.split(fresh, [100, 101], axis=1), strict=True):
            assert_same(part, np.ascontiguousarray(expected), like=x)
        with stream:
            assert_same(backward(y, out=other), np.ascontiguousarray(y.get()[:, R]), like=y)


def test_streams_wait_for_each_other_by_events(cp):
    x = cp.asarray(items(512, 4096))
    first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
    middle, out = cp.empty_like(x), cp.empty_like(x)
    cp.cuda.Device().synchronize()
    for _ in range(5):
        with first:
            backward(x, out=middle)
            done = first.record()
        with second:
            second.wait_event(done)
            gs.slice(middle, [-1], [-1000], [0], [-1], out=out)
        second.synchronize()
        assert (out.get() == x.get()[R, R]).all()


def test_threads_share_nothing(cp):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(40):
                x = rng.integers(0, 256, (int(rng.integers(1, 40)), int(rng.integers(1, 400))), np.uint8)
                cut = int(rng.integers(0, x.shape[1] + 1))
                data = cp.asarray(x)
                result = [*gs.split(data, [cut, x.shape[1] - cut], axis=1), backward(data)]
                stream.synchronize()
                expected = [x[:, :cut], x[:, cut:], x[:, R]]
                wrong.extend(1 for a, b in zip(result, expected, strict=True) if (a.get() != b).any())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_only_the_outputs_are_allocated(cp):
    x = cp.asarray(items(64, 1024))
    backward(x)
    asked = []

    def allocate(size):
        asked.append(size)
        return cp.get_default_memory_pool().malloc(size)

    with cp.cuda.using_allocator(allocate):
        backward(x)
        assert asked == [x.nbytes]
        asked.clear()
        gs.split(x, num_outputs=4, axis=1)
        assert asked == [x.nbytes // 4] * 4
        asked.clear()
        parts = gs.split(x, num_outputs=16, axis=1)
        assert len(asked) == 1
        assert all(part.data.ptr % 512 == 0 and part.flags.c_contiguous for part in parts)
        asked.clear()
        gs.split(x, num_outputs=16, axis=1, one_block=False)
        assert len(asked) == 16
        asked.clear()
        gs.split(x, num_outputs=16, axis=1, out=parts)
        assert asked == []


def test_out_may_be_strided_and_unaligned(cp):
    x = items(50, 201)
    for dtype in ("u1", "u2", "u4"):
        data = cp.asarray(x.astype(dtype))
        for make in (
            lambda memory: memory[1 : 1 + x.size].reshape(x.shape),
            lambda memory: memory[: 2 * x.size].reshape(50, 402)[:, ::-2],
            lambda memory: memory[3 : 3 + x.size].reshape(x.shape[::-1]).T,
        ):
            memory = cp.zeros(3 * x.size, dtype)
            out = make(memory)
            assert backward(data, out=out) is out
            assert (out.get() == x[:, R].astype(dtype)).all()
            rest = memory.get()
            make(rest)[...] = 0
            assert not rest.any()


def test_more_than_4_gibibytes(cp):
    size = (1 << 32) + 4099
    free, _ = cp.cuda.runtime.memGetInfo()
    if free < 2.5 * size:
        pytest.skip(f"needs {2.5 * size / 2**30:.0f} GiB of free device memory; there are {free / 2**30:.1f}")
    x = cp.zeros(size, cp.uint8)
    places = cp.asarray([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, size - 1])
    x[places] = cp.arange(1, 8, dtype=cp.uint8)
    result = backward(x)
    assert result[size - 1 - places].get().tolist() == list(range(1, 8))
    assert int((result != 0).sum()) == 7
    del result
    left, right = gs.split(x, [2**32 - 1, 4100])
    assert right[0] == 5
    assert int((left != 0).sum()) == 4
    del left, right
    rows = x[: 1 << 32].reshape(1 << 16, 1 << 16)
    assert bool((gs.contiguous(rows[::4096, ::-4096]) == rows[::4096, ::-4096]).all())


@pytest.fixture
def on_two(cp, cuda, monkeypatch):
    """The same items on two devices, and the devices of the launches, which must be those of their streams."""
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    x, launched = items(64, 1024), []
    launch = cuda.CUDA_EXECUTOR.launch

    def record(*given):
        launched.append(cp.cuda.runtime.getDevice())
        launch(*given)

    monkeypatch.setattr(cuda.CUDA_EXECUTOR, "launch", record)
    return x, [on(cp, device, x) for device in (0, 1)], launched


def on(cp, device, array):
    """Return an array as one of a device."""
    with cp.cuda.Device(device):
        return cp.asarray(array)


DEEP = items(2, 2, 2, 2, 2, 2, 2, 2, 2, 2)  # has more axes than the kernels


def many_axes(view):
    """Return a view that keeps all its axes."""
    return view[(slice(None), R) * 5].transpose(1, 0, 3, 2, 5, 4, 7, 6, 9, 8)


# What is called, and the devices of its launches, for data on devices 0 and 1.
ON_TWO = {
    "slice": (lambda zero, one: [backward(zero), backward(one)], [0, 1]),
    "one call for both": (lambda zero, one: gs.contiguous([one[:, R], zero[:, R], one[R], zero[R]]), [0, 0, 1, 1]),
    "split in one block": (lambda zero, one: gs.split(one, num_outputs=16, axis=1), [1]),
    "graph": (lambda zero, one: graph_of_two().run({"a": zero, "b": one}).values(), [0, 1]),
}


UINT8, INT64 = 2, 7  # of onnx.TensorProto


def graph_of_two():
    """Return a graph that reverses the rows of two inputs."""
    pytest.importorskip("onnx")
    from gpuslice.onnx import Graph

    nodes = [node("Slice", [name, "start", "end", "axis", "step"], [f"{name} back"]) for name in "ab"]
    constants = {"start": [-1], "end": [-(1 << 40)], "axis": [1], "step": [-1]}
    inputs = [tensor_info(name, elem_type=UINT8) for name in ("a", "b", "a back", "b back")]
    return Graph(model(nodes, inputs[:2], inputs[2:], constants))


@pytest.mark.parametrize("name", ON_TWO)
@pytest.mark.parametrize("current", [0, 1])
def test_each_device_runs_its_own(cp, on_two, name, current):
    x, (zero, one), launched = on_two
    call, devices = ON_TWO[name]
    with cp.cuda.Device(current):
        results = list(call(zero, one))
        assert cp.cuda.runtime.getDevice() == current
    assert sorted(launched) == devices
    expected = {
        "slice": [x[:, R]] * 2,
        "one call for both": [x[:, R], x[:, R], x[R], x[R]],
        "split in one block": np.split(x, 16, axis=1),
        "graph": [x[:, R]] * 2,
    }[name]
    homes = {"one call for both": [one, zero] * 2, "split in one block": [one] * 16}.get(name, [zero, one])
    for result, right, like in zip(results, expected, homes, strict=True):
        assert_same(result, np.ascontiguousarray(right), like=like)


def test_what_kernels_cannot_move_is_assigned_on_its_device(cp, cuda, on_two, monkeypatch):
    (data,) = [on(cp, 1, DEEP)]
    for capability in (90, 61):  # all devices are old, then
        monkeypatch.setattr(cuda, "capability", lambda device, capability=capability: capability)
        with gs.trace() as t:
            near, far = gs.contiguous([many_axes(cp.asarray(DEEP)), many_axes(data)])
        assert [launch.executor for launch in t.launches] == ["generic"] * 2
        assert_same(near, np.ascontiguousarray(many_axes(DEEP)), like=cp.asarray(DEEP))
        assert_same(far, np.ascontiguousarray(many_axes(DEEP)), like=data)


def test_a_kernel_that_does_not_compile_on_one_device_leaves_both_unchanged(cp, cuda, on_two, monkeypatch):
    _, both, launched = on_two
    kernel = cuda.CUDA_EXECUTOR.kernel

    def fail(packed):
        if cp.cuda.runtime.getDevice() == 1:
            raise RuntimeError("does not compile")
        return kernel(packed)

    monkeypatch.setattr(cuda.CUDA_EXECUTOR, "kernel", fail)
    outs = [on(cp, data.device.id, np.zeros((64, 1024), np.uint8)) for data in both]
    with pytest.raises(RuntimeError, match="does not compile"):
        gs.contiguous([data[:, R] for data in both], out=outs)
    assert not any(out.get().any() for out in outs)
    assert launched == []


def test_out_is_on_the_device_of_its_input(cp, on_two):
    _, (zero, one), _ = on_two
    with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must be on"):
        backward(one, out=cp.empty_like(zero))


@pytest.mark.parametrize("strides", [(0, 4), (4, 4), (8, 4)])
def test_out_that_overlaps_itself_is_refused(cp, strides):
    memory = cp.zeros(99, np.int32)
    out = cp.lib.stride_tricks.as_strided(memory, (3, 4), strides)
    with pytest.raises(ValueError, match="out must not overlap itself"):
        gs.slice(cp.ones((3, 4), np.int32), [], [], out=out)
    assert not memory.any()


def test_a_result_that_is_too_large_changes_nothing(cp):
    x = cp.asarray(items(1, 1000))
    huge = cp.broadcast_to(x, (1 << 45, 1000))
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        gs.contiguous(huge)
    assert (x.get() == items(1, 1000)).all()
    assert (backward(x).get() == items(1, 1000)[:, R]).all()


def test_both_ways_to_pass_parameters_give_the_same(cp, cuda, monkeypatch):
    x = items(64, 1000, dtype="u4")
    results = [backward(cp.asarray(x))]
    monkeypatch.setattr(cuda, "_buffer", None)
    results.append(backward(cp.asarray(x)))
    for result in results:
        assert_same(result, np.ascontiguousarray(x[:, R]), like=cp.asarray(x))


def test_small_parameters_take_more_launches(cp, kernels, monkeypatch):
    x = items(3, 1000)
    data = cp.asarray(x)
    launches = []
    for version in (12000, 13000):
        monkeypatch.setattr(kernels, "cuda_version", lambda version=version: version)
        gs.clear_caches()
        with gs.trace() as t:
            parts = gs.split(data, num_outputs=1000, axis=1)
        assert (cp.concatenate(parts, axis=1).get() == x).all()
        launches.append(len(t.launches))
    assert launches == [8, 1]


@pytest.mark.parametrize("why", ["is_hip", "capability"])
def test_devices_that_cannot_run_the_kernels_use_assignment(cp, cuda, monkeypatch, why):
    runtime = type("Runtime", (), {"is_hip": why == "is_hip", "getDevice": cp.cuda.runtime.getDevice})
    monkeypatch.setattr(cuda.cupy.cuda, "runtime", runtime)
    monkeypatch.setattr(cuda, "capability", lambda device: 90 if why == "is_hip" else 61)
    data = cp.asarray(items(64, 1000))
    with gs.trace() as t:
        result = backward(data)
    assert {launch.executor for launch in t.launches} == {"generic"}
    assert (result.get() == items(64, 1000)[:, R]).all()


# What a process compiles and copies. It may run on the emulation, of which its argument is the folder.
PROCESS = """
import pathlib, sys
if sys.argv[1]:
    from cuda_on_cpu.load import load
    load(pathlib.Path(sys.argv[1]))
import cupy
from cupy.cuda import compiler
import gpuslice as gs
expressions = []
add = compiler.nvrtc.addNameExpression
compiler.nvrtc.addNameExpression = lambda program, name: (expressions.append(name), add(program, name))
x = cupy.arange(3000, dtype="u1").reshape(30, 100)
gs.warm_up(gs.split, x, [61, 39], axis=1)
parts = [*gs.split(x, [61, 39], axis=1), gs.contiguous(x.T)]
assert (cupy.concatenate(parts[:2], axis=1) == x).all() and (parts[2].T == x).all()
print(*expressions, sep="\\n")
"""


def test_a_second_process_compiles_nothing(request, cp, tmp_path):
    folder = request.config.getoption("--cuda-on-cpu")
    command = [sys.executable, "-c", PROCESS, "" if folder is None else str(folder.resolve())]
    paths = [str(Path(gs.__file__).parent.parent), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "CUPY_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split("\n")
        for _ in range(2)
    )
    assert sorted(first) == ["", "gpuslice::rows<unsigned, 8, 1, 1>", "gpuslice::tiles<unsigned, 1, 1, 0>"]
    assert second == ["", ""]


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("13.6.0", True),
        ("14.0.1", True),
        ("14.1.0rc1", True),
        ("14.2.0", False),
        ("14.10.0", False),
        ("15.0.0b1", False),
    ],
)
def test_a_cupy_that_forgets_kernels_is_named_once(cp, kernels, monkeypatch, version, old):
    monkeypatch.setattr(kernels.cupy, "__version__", version)
    kernels._warn_of_old_cupy.cache_clear()
    x = cp.asarray(items(8, 100))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        backward(x)
        gs.contiguous(x.T)
    kernels._warn_of_old_cupy.cache_clear()
    wanted = f"gpuslice needs CuPy 14.2 or newer; got CuPy {version}, which does not keep compiled kernels: "
    assert [str(one.message)[: len(wanted)] for one in caught] == [wanted] * old


def driver_error(code):
    """Return a function that raises an error of the driver."""

    def fail(**_):
        from cupy import cuda

        raise cuda.driver.CUDADriverError(code)

    return fail


def no_nvrtc(**_):
    raise RuntimeError("CuPy failed to load libnvrtc.so.13")


NAME = r"^CUDA kernel gpuslice::rows<unsigned, 1, 1, -1> for device 0 "
OLD = r"is too old for the device\. It compiles for compute capabilities \S+ to \S+, and the device has 90\.0\. Install a newer"
NEW = r"is too new for the device\. It compiles for compute capabilities \S+ to \S+, and the device has 1\.0\. Install an older"
# What is in place of CuPy's RawModule, the compute capability of the device if it is another, and the message.
BROKEN = {
    "the text": (None, None, NAME + "does not compile: "),
    "no NVRTC": (
        no_nvrtc,
        None,
        NAME + r"cannot be compiled\. NVRTC or a part of it may be missing: pip install 'gpuslice\[cuda13\]'.*libnvrtc",
    ),
    "an NVRTC older than the device": (driver_error(209), 900, NAME + "does not load: NVRTC .* " + OLD),
    "an NVRTC newer than the device": (driver_error(209), 10, NAME + "does not load: NVRTC .* " + NEW),
    "a code that the driver refuses": (driver_error(200), None, NAME + "does not load: CUDA_ERROR_INVALID_IMAGE"),
    "another thread captures": (
        driver_error(900),
        None,
        NAME + r"is not compiled and loaded yet, which a capture .* call gpuslice\.warm_up\(\.\.\.\)",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_kernel_that_does_not_compile_leaves_out_unchanged(cp, kernels, monkeypatch, broken, tmp_path):
    x = cp.asarray(items(64, 1001))
    out = cp.zeros_like(x)
    module, capability, expected = BROKEN[broken]
    if module is not None:
        monkeypatch.setattr(kernels.cupy, "RawModule", module)
    else:
        (tmp_path / "kernels").mkdir()
        (tmp_path / "kernels" / "copy.cu").write_text("namespace gpuslice { this is no CUDA }")
        monkeypatch.setattr(kernels.kernel_sources, "folder", lambda: tmp_path / "kernels")
    if capability is not None:
        monkeypatch.setattr(kernels, "capability", lambda device: capability)
    with pytest.raises(RuntimeError, match=expected):
        backward(x, out=out)
    assert not out.get().any()
    monkeypatch.undo()
    assert (backward(x, out=out).get() == x.get()[:, R]).all()


@pytest.mark.parametrize("mode", ["Relaxed", "ThreadLocal", "Global"])
def test_a_capture_with_a_cold_kernel_says_what_to_call(cp, kernels, mode):
    """It stays valid, and has the copies that were captured before and after."""
    x = cp.asarray(items(64, 1000))
    cold, warm = cp.zeros_like(x), cp.zeros_like(x)
    assert gs.warm_up(gs.slice, x, [-1], [-65], out=warm, axes=[0], steps=[-1]) == ["rows<8, 1>"]
    assert not warm.get().any()
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture(getattr(cp.cuda.runtime, f"streamCaptureMode{mode}"))
        gs.slice(x, [-1], [-65], axes=[0], steps=[-1], out=warm)
        with pytest.raises(
            RuntimeError, match=r"rows<unsigned, 1, 4, -1> .* call gpuslice\.warm_up\(\.\.\.\) with the"
        ):
            backward(x.view("f4"), out=cold.view("f4"))
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert (warm.get() == x.get()[R]).all()
    assert not cold.get().any()
    assert gs.warm_up(backward, x.view("f4"), out=cold.view("f4")) == ["rows<4, -1>"]
    with stream:
        stream.begin_capture(getattr(cp.cuda.runtime, f"streamCaptureMode{mode}"))
        backward(x.view("f4"), out=cold.view("f4"))
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert (cold.get().view("f4").view("u4") == x.get().view("u4")[:, R]).all()


def test_warm_up_compiles_what_a_call_needs_and_copies_nothing(cp, kernels, monkeypatch):
    built = []
    raw_module = cp.RawModule

    def build(**given):
        built.extend(given["name_expressions"])
        return raw_module(**given)

    monkeypatch.setattr(kernels.cupy, "RawModule", build)
    x, seen = cp.asarray(items(40, 999)), []
    outs = [cp.zeros((40, n), cp.uint8) for n in (500, 499)]
    with gs.trace() as t:
        assert gs.warm_up(gs.split, x, [500, 499], axis=1, out=outs, progress=lambda *given: seen.append(given)) == [
            "rows<1, 1>"
        ]
        assert gs.warm_up(gs.contiguous, [x[:, R], x.T]) == ["rows<1, -1>", "tiles<1, 0>"]
    assert not t.launches
    assert not any(out.get().any() for out in outs)
    assert seen == [(1, 1)]
    assert len(built) == 3
    for part, right in zip(gs.split(x, [500, 499], axis=1, out=outs), np.split(x.get(), [500], 1), strict=True):
        assert_same(part, np.ascontiguousarray(right), like=x)
    results = gs.contiguous([x[:, R], x.T])
    assert len(built) == 3  # nothing else was needed
    for result, right in zip(results, [x.get()[:, R], x.get().T], strict=True):
        assert_same(result, np.ascontiguousarray(right), like=x)


def test_warm_up_of_a_graph_on_two_devices(cp, kernels, on_two):
    _, (zero, one), launched = on_two
    graph = graph_of_two()
    assert gs.warm_up(graph.run, {"a": zero, "b": one}) == ["rows<1, -1>"]
    assert kernels.compiled.cache_info().currsize == 2
    assert launched == []
    assert [result.device.id for result in graph.run({"a": zero, "b": one}).values()] == [0, 1]
    assert kernels.compiled.cache_info().misses == 2


def test_warm_up_of_a_graph_reads_bounds_that_are_joined_on_the_device(cp, kernels):
    pytest.importorskip("onnx")
    from gpuslice.onnx import Graph

    nodes = [
        node("SequenceConstruct", ["rows", "columns"], ["both"]),
        node("ConcatFromSequence", ["both"], ["starts"], axis=0),
        node("Slice", ["x", "starts", "ends"], ["cut"]),
    ]
    bounds = {"rows": [3], "columns": [5], "ends": [60, 90]}
    inputs = [tensor_info("x", elem_type=UINT8), *(tensor_info(name, elem_type=INT64) for name in bounds)]
    graph = Graph(model(nodes, inputs, [tensor_info("cut", elem_type=UINT8)]))
    x = items(64, 100)
    given = {"x": cp.asarray(x)} | {name: cp.asarray(values) for name, values in bounds.items()}
    assert gs.warm_up(graph.run, given) == ["rows<1, 1>"]
    assert_same(graph.run(given)["cut"], x[3:60, 5:90].copy(), like=given["x"])
    assert kernels.compiled.cache_info().misses == 1


def test_warm_up_of_a_width_compiles_all_its_kernels(cp, kernels, monkeypatch):
    monkeypatch.setattr(kernels, "all_instantiations", lambda: [one for one in ALL if one[3:] in ((32, 8), (64, 8))])
    wanted = {(*one, 0) for one in ALL if one[1] == 16 and one[4] == 8}
    asked = []
    monkeypatch.setattr(kernels, "compiled", lambda *given: asked.append(given))
    seen = []
    names = gs.warm_up(widths=[16], progress=lambda *given: seen.append(given))
    assert set(names) == {kernel.name for kernel in KERNELS if kernel.width == 16}
    assert set(asked) == wanted
    assert seen == [(i + 1, len(wanted)) for i in range(len(wanted))]


def test_warm_up_stops_at_the_first_kernel_that_does_not_compile(cp, kernels, monkeypatch):
    monkeypatch.setattr(kernels.cupy, "RawModule", no_nvrtc)
    with pytest.raises(RuntimeError, match=r"^CUDA kernel gpuslice::.* for device 0 cannot be compiled\. NVRTC"):
        gs.warm_up(widths=[16])


def test_warm_up_needs_an_array_of_cupy(cp):
    out = np.zeros(6, "u1")
    for arguments in ([np.arange(6)], [[np.arange(6)]], ["text"], []):
        with pytest.raises(
            ValueError, match="^warm_up: an argument of the call must be a CuPy array or a CUDA tensor; got none"
        ):
            gs.warm_up(gs.slice, *arguments, [-1], [-9], steps=[-1], out=out)
    assert not out.any()
    with pytest.raises(ValueError, match=f"^warm_up: {newest('Slice')}: steps must not be 0"):
        gs.warm_up(gs.slice, cp.arange(6), [-1], [-9], steps=[0])


@pytest.mark.parametrize("piece", [1 << 25, 1000])
def test_a_model_runs_on_the_device_from_the_command_line(cp, tmp_path, monkeypatch, capsys, piece):
    from onnx import save

    from gpuslice.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpuslice.cli.copies.PIECE", piece)
    x = items(7, 40, 3, dtype=np.float32)
    np.save("x.npy", x)
    nodes = [
        node("Slice", ["x", "start", "end", "axis", "step"], ["y"]),
        node("SplitToSequence", ["x", "sizes"], ["rows"], axis=1),
        node("Identity", ["x"], ["same"]),
    ]
    bounds = {"start": [-1], "end": [-(1 << 31)], "axis": [1], "step": [-2], "sizes": [30, 10]}
    save(model(nodes, ["x"], ["y", sequence_info("rows"), "same"], bounds), "m.onnx")
    assert main(["run", "m.onnx", "-i", "x=x.npy", "-o", "y.npz", "--device", "cuda"]) == 0
    assert "<CUDA Device 0>" in capsys.readouterr().out
    with np.load("y.npz") as results:
        expected = {"y": x[:, ::-2], "rows_0": x[:, :30], "rows_1": x[:, 30:], "same": x}
        assert results.files == list(expected)
        for name, array in expected.items():
            assert_same(results[name], array.copy())


def test_warm_up_on_the_command_line(cp, kernels, monkeypatch, capsys):
    from gpuslice.cli import main

    few = [one for one in ALL if one[1] == 16 and one[0] == "tiles"]
    monkeypatch.setattr(kernels, "all_instantiations", lambda: few)
    assert main(["warm-up", "--width", "16", "--width", "8"]) == 0
    assert capsys.readouterr().out.startswith(f"{len(few)} kernels are compiled, ")
    assert kernels.compiled.cache_info().currsize == len(few)
    assert main(["warm-up", "--width", "3"]) == 2
    assert capsys.readouterr().err == "gpuslice: warm_up: widths must be among 1, 2, 4, 8, 16; got int 3\n"
    kernels.compiled.cache_clear()
    monkeypatch.setattr(kernels.cupy, "RawModule", no_nvrtc)
    assert main(["warm-up"]) == 2
    assert capsys.readouterr().err.startswith("gpuslice: CUDA kernel gpuslice::tiles<unsigned")
