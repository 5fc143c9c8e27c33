"""What only CUDA has: streams, capture, devices, memory, parameters of launches, and kernels that do not compile."""

import threading

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same, items, model, node, tensor_info
from onnx import TensorProto

import gpuslice as gs
from gpuslice.versions import newest

pytestmark = pytest.mark.gpu

R = slice(None, None, -1)


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


def backward(data, out=None):
    """Return a copy with the last axis reversed."""
    return gs.slice(data, [-1], [-(1 << 40)], [-1], [-1], out=out)


@pytest.mark.parametrize("dtype", ["?", "i1", "f2", "u4", "f8", "c8", "c16", ml_dtypes.bfloat16])
def test_every_width_of_item(cp, dtype):
    x = items(3, 500, np.dtype(dtype).itemsize).view(dtype)[..., 0] if dtype != "?" else items(3, 500) > 127
    for view in (x, x[:, R], x[:, ::3], x[:, 7:], x.T):
        with gs.trace() as t:
            result = gs.contiguous(cp.asarray(x)[:, R][:, R] if view is x else on_device(cp, x, view))
        assert_same(result, np.ascontiguousarray(view), like=cp.asarray(view))
        assert [launch.executor for launch in t.launches] == ["cuda"]


def on_device(cp, x, view):
    """Return the same view of a copy of ``x`` on the device."""
    offset = view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    copied = cp.asarray(x)
    return cp.ndarray(view.shape, view.dtype, copied.data + offset, strides=view.strides)


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


def graph_of_two():
    """Return a graph that reverses the rows of two inputs."""
    from gpuslice.onnx import Graph

    nodes = [node("Slice", [name, "start", "end", "axis", "step"], [f"{name} back"]) for name in "ab"]
    constants = {"start": [-1], "end": [-(1 << 40)], "axis": [1], "step": [-1]}
    inputs = [tensor_info(name, elem_type=TensorProto.UINT8) for name in ("a", "b", "a back", "b back")]
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
        monkeypatch.setattr(cuda, "_capability", lambda device, capability=capability: capability)
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


def test_small_parameters_take_more_launches(cp, cuda, monkeypatch):
    x = items(3, 1000)
    data = cp.asarray(x)
    launches = []
    for version in (12000, 13000):
        monkeypatch.setattr(cuda, "_cuda_version", lambda version=version: version)
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
    monkeypatch.setattr(cuda, "_capability", lambda device: 90 if why == "is_hip" else 61)
    data = cp.asarray(items(64, 1000))
    with gs.trace() as t:
        result = backward(data)
    assert {launch.executor for launch in t.launches} == {"generic"}
    assert (result.get() == items(64, 1000)[:, R]).all()


@pytest.mark.parametrize("broken", ["text", "nvrtc"])
def test_a_kernel_that_does_not_compile_leaves_out_unchanged(cp, cuda, monkeypatch, broken, tmp_path):
    x = cp.asarray(items(64, 1001))
    out = cp.zeros_like(x)
    cuda._kernel.cache_clear()
    if broken == "text":
        (tmp_path / "kernels").mkdir()
        (tmp_path / "kernels" / "copy.cu").write_text("namespace gpuslice { this is no CUDA }")
        monkeypatch.setattr(cuda.kernel_sources, "folder", lambda: tmp_path / "kernels")
        expected = r"CUDA kernel gpuslice::rows<unsigned, 1, 1, -1> for device 0 does not compile: "
    else:

        def missing(**_):
            raise RuntimeError("CuPy failed to load libnvrtc.so.13")

        monkeypatch.setattr(cuda.cupy, "RawModule", missing)
        expected = r"NVRTC or a part of it may be missing: pip install 'gpuslice\[cuda13\]'.*failed to load libnvrtc"
    with pytest.raises(RuntimeError, match=expected):
        backward(x, out=out)
    assert not out.get().any()
    monkeypatch.undo()
    assert (backward(x, out=out).get() == x.get()[:, R]).all()
