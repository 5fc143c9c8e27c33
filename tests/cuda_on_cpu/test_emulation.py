"""The emulation can fail: it finds errors that a GPU may not show, and refuses what a GPU refuses."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

pytestmark = pytest.mark.gpu
TESTS = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def folder(request):
    """The folder of --cuda-on-cpu. Without it there is no emulation."""
    given = request.config.getoption("--cuda-on-cpu")
    if given is None:
        pytest.skip("tries the emulation itself: needs --cuda-on-cpu")
    return given.resolve()


def run(folder, code, **environment):
    """Run code in its own process, with this environment and CuPy on the CPU."""
    head = (
        f"import pathlib, cuda_on_cpu.load\ncuda_on_cpu.load.load(pathlib.Path({str(folder)!r}))\nimport cupy, numpy\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_ON_CPU_")}
    environment = clean | {"PYTHONPATH": str(TESTS)} | environment
    return subprocess.run([sys.executable, "-c", head + code], env=environment, capture_output=True, text=True)


WRITE = r"""
kernel = cupy.RawKernel('extern "C" __global__ void write(int* target, int at) { target[at] = 1; }', "write")
array = cupy.zeros(1024 + EXTRA, numpy.int32)
kernel((1,), (1,), (array, numpy.int32(AT)))
assert array.get().sum() == (0 <= AT < array.size)
print("written", flush=True)
del array
print("released", flush=True)
"""


@pytest.mark.parametrize(
    ("extra", "at", "printed", "signaled"),
    [
        (0, 1023, "written\nreleased\n", 0),
        (0, 1024, "", signal.SIGSEGV),
        (
            1,
            1025,
            "written\n",
            signal.SIGABRT,
        ),  # past the array, but before the page, since pages begin at a multiple of a vector
        (0, -1, "", signal.SIGSEGV),
    ],
    ids=["inside", "one item past", "one item past, unaligned end", "one item before"],
)
def test_guard_pages_find_a_write_beside_an_allocation(folder, extra, at, printed, signaled):
    done = run(folder, WRITE.replace("EXTRA", str(extra)).replace("AT", str(at)), CUDA_ON_CPU_GUARD="1")
    assert (done.stdout, done.returncode) == (printed, -signaled), done.stderr


REVERSE = r"""
code = '''
extern "C" __global__ void reverse(int* target, const int* source) {
  __shared__ int memory[256];
  memory[threadIdx.x] = source[threadIdx.x];
  BARRIER
  target[threadIdx.x] = memory[255 - threadIdx.x];
}'''
source, target = cupy.asarray(numpy.arange(256, dtype=numpy.int32)), cupy.zeros(256, numpy.int32)
cupy.RawKernel(code, "reverse")((1,), (256,), (target, source))
print((target.get() == source.get()[::-1]).all())
"""


@pytest.mark.parametrize(("barrier", "right"), [("__syncthreads();", "True\n"), ("", "False\n")])
def test_shuffled_threads_find_a_missing_barrier(folder, barrier, right):
    done = run(folder, REVERSE.replace("BARRIER", barrier), CUDA_ON_CPU_SHUFFLE="1")
    assert done.stdout == right, done.stderr


def test_memory_runs_out(folder):
    code = """
cupy.empty(900_000, numpy.uint8)
try:
    cupy.empty(1_100_000, numpy.uint8)
except cupy.cuda.memory.OutOfMemoryError:
    print("refused")
"""
    assert run(folder, code, CUDA_ON_CPU_MEMORY="1000000").stdout == "refused\n"


UNSUPPORTED, IMPLICIT = "cudaErrorStreamCaptureUnsupported", "cudaErrorStreamCaptureImplicit"
# The mode of a capture, whether its stream waits for the default one, what is tried, and the error.
REFUSED = {
    "waiting for the stream": ("Relaxed", False, lambda cuda, address: cuda.get_current_stream().synchronize(), UNSUPPORTED),
    "waiting for the device": ("Relaxed", False, lambda cuda, address: cuda.Device().synchronize(), UNSUPPORTED),
    "an allocation": ("Global", False, lambda cuda, address: cuda.runtime.malloc(16), UNSUPPORTED),
    "loading a module": ("Global", False, lambda cuda, address: cuda.function.Module().load(b""), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    "a copy that waits": ("Global", False, lambda cuda, address: cuda.runtime.memcpy(address, address, 8, 4), UNSUPPORTED),
    "work on the default stream": ("Relaxed", True, lambda cuda, address: cuda.runtime.memsetAsync(address, 0, 8, 0), IMPLICIT),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_capture_refuses(case):
    from cupy import cuda, zeros

    mode, blocking, action, error = REFUSED[case]
    array, stream = zeros(4), cuda.Stream(non_blocking=not blocking)
    with stream:
        stream.begin_capture(getattr(cuda.runtime, f"streamCaptureMode{mode}"))
        with pytest.raises((cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError), match=error):
            action(cuda, array.data.ptr)
        with pytest.raises(cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
            stream.end_capture()


def test_a_kernel_its_stream_and_the_current_device_belong_together():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("CUDA_ON_CPU_DEVICES is 1")
    kernel = cupy.RawKernel('extern "C" __global__ void none(int* target) { }', "none").kernel
    array, stream = cupy.zeros(4, numpy.int32), cupy.cuda.Stream(non_blocking=True)
    kernel((1,), (1,), (array,), stream=stream)
    with cupy.cuda.Device(1):
        own = cupy.RawKernel('extern "C" __global__ void none(int* target) { }', "none").kernel
        own((1,), (1,), (array,))
        for wrong, place in ((kernel, None), (kernel, stream), (own, stream)):
            with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_HANDLE"):
                wrong((1,), (1,), (array,), stream=place)


def test_a_graph_replays_what_was_launched():
    import cupy

    source, target = cupy.arange(1000), cupy.zeros(1000, int)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        target[...] = source[::-1]
        graph = stream.end_capture()
        assert not target.get().any()
        cupy.zeros(77)[...] = 5  # a launch in between, of another shape
        for first in (0, 10):
            source += first
            graph.launch()
            assert target.get().tolist() == list(range(999 + first, first - 1, -1))


def test_what_does_not_compile_or_is_not_emulated_says_so(capfd):
    import cupy

    with pytest.raises(cupy.cuda.compiler.CompileException, match="missing.* was not declared"):
        cupy.RawKernel('extern "C" __global__ void broken() { missing(); }', "broken").compile()
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="cudaErrorNotSupported"):
        cupy.cuda.runtime.mallocManaged(16)
    assert "cudaMallocManaged is not emulated" in capfd.readouterr().err
    halves = cupy.zeros(4, "f2")
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_IMAGE"):
        halves + halves
