"""PyTorch's CUDA tensors through CuPy: to the bit, on PyTorch's current stream, into memory of PyTorch's allocator.

PyTorch has no CUDA in the emulation of `cuda_on_cpu`. There, tensors of the CPU stand in, since the memory of the
emulated devices is the CPU's: they say that they are on a CUDA device. All from the addresses on is real.
"""

import numpy as np
import pytest
from helpers import node

import gpuslice as gs
from gpuslice.engine import lowering
from gpuslice.onnx import run_node
from gpuslice.versions import newest

torch = pytest.importorskip("torch", reason="torch is not installed")

from tensors import BACK, BITS, LAYOUTS, random_bits  # noqa: E402

from gpuslice import torch_tensors  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
]

DTYPES = [
    torch.bool, torch.uint8, torch.float8_e4m3fn, torch.bfloat16, torch.float16, torch.uint16, torch.complex32,
    torch.float32, torch.uint32, torch.float64, torch.uint64, torch.complex64, torch.complex128,
]  # fmt: skip


class StandIn(torch.Tensor):
    """A tensor of the CPU that says it is on a CUDA device, as all do that are made beside it."""

    number = 0

    @property
    def device(self):
        return torch.device("cuda", self.number)

    @property
    def is_cuda(self):
        return True

    @property
    def is_cpu(self):
        return False

    def get_device(self):
        return self.number

    def new_empty(self, shape, *, dtype=None):
        return stand_in(torch.full(shape, 7, dtype=torch.uint8).to(dtype or self.dtype), self.number)


class OnSecond(StandIn):
    """One on the second device. Views of it are of its class."""

    number = 1


def stand_in(tensor, number=0):
    return torch.Tensor._make_subclass((StandIn, OnSecond)[number], tensor)


class Streams:
    """PyTorch's current stream: the default one until another one is set."""

    cuda_stream = 0

    def __call__(self, device=None):
        return self


@pytest.fixture
def streams(monkeypatch):
    """What PyTorch says about its streams, where it has no CUDA."""
    streams = Streams()
    monkeypatch.setattr(torch.cuda, "current_stream", streams)
    return streams


@pytest.fixture
def on_cuda(monkeypatch, request):
    """A function that returns a tensor of the CPU as one on a CUDA device."""
    if torch.cuda.is_available():
        return lambda tensor, number=0: tensor.to(torch.device("cuda", number))
    request.getfixturevalue("streams")
    keys_of = torch_tensors._keys
    plain = {keys_of(torch.empty(0)): torch_tensors._keys_of_plain("CUDA", "AutogradCUDA", "ADInplaceOrView")}
    with torch.inference_mode():
        plain[keys_of(torch.empty(0))] = torch_tensors._keys_of_plain("CUDA")

    def keys(tensor):
        return plain.get(keys_of(tensor), 0) if isinstance(tensor, StandIn) else keys_of(tensor)

    assert all(key in torch_tensors._KEYS | torch_tensors._INFERENCE_KEYS for key in plain)
    monkeypatch.setattr(torch_tensors, "_CLASSES", (*torch_tensors._CLASSES, StandIn, OnSecond))
    monkeypatch.setattr(torch_tensors, "_keys", keys)
    return stand_in


def ints(x):
    """Return the items of a tensor as integers of their size, in NumPy."""
    return np.array(x.detach().cpu().as_subclass(torch.Tensor).contiguous().view(BITS[x.element_size()]).numpy())


def assert_bits(actual, expected, like):
    assert type(actual) is type(like)
    assert (actual.dtype, actual.device, tuple(actual.shape)) == (like.dtype, like.device, expected.shape)
    assert actual.is_contiguous()
    assert actual._base is None
    assert not actual._is_view()
    assert ints(actual).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_to_the_bit(dtype, on_cuda):
    for name, layout in LAYOUTS.items():
        x = on_cuda(layout(random_bits(dtype, 6, 7).view(BITS[dtype.itemsize])).view(dtype))
        expected = ints(x)
        for _ in range(2):  # the second call is known
            assert_bits(gs.slice(x, *BACK), expected[::-1, ::-2], x)
            assert_bits(gs.contiguous(x.T), expected.T, x)
            out = x.new_empty((6, 4))
            assert gs.slice(x, *BACK, out=out) is out
            assert ints(out).tobytes() == expected[::-1, ::-2].tobytes()
            outs = [x.new_empty((2, 7)), x.new_empty((4, 7))]
            for parts in (gs.split(x, [2, 4]), gs.split(x, [2, 4], one_block=True), gs.split(x, [2, 4], out=outs)):
                assert [ints(part).tobytes() for part in parts] == [expected[:2].tobytes(), expected[2:].tobytes()]
        rows = gs.split_to_sequence(x, keepdims=0)
        assert_bits(gs.concat_from_sequence(rows, axis=1, new_axis=1), expected.T, x)
        assert name
        assert ints(x).tobytes() == expected.tobytes()


def test_kernels_copy_in_few_launches(on_cuda):
    x, y = on_cuda(torch.arange(600.0).reshape(20, 30)), on_cuda(torch.arange(600.0).reshape(20, 30) + 1)
    calls = {
        "slice": (lambda: [gs.slice(x, *BACK)], [ints(x)[::-1, ::-2]]),
        "out": (lambda: [gs.contiguous(x.T, out=x.new_empty((30, 20)))], [ints(x).T]),
        "parts": (lambda: gs.split(x, num_outputs=20, axis=0), np.split(ints(x), 20)),
        "a list": (lambda: gs.contiguous([x.T, y]), [ints(x).T, ints(y)]),
        "a join": (lambda: [gs.concat_from_sequence([x, y], axis=1)], [np.concatenate([ints(x), ints(y)], 1)]),
    }
    for name, (call, expected) in calls.items():
        for again in (False, True):
            with gs.trace() as t:
                results = call()
            assert {launch.executor for launch in t.launches} == {"cuda"}, (name, again)
            assert len(t.launches) <= len({result.shape for result in results})
            for result, wanted in zip(results, expected, strict=True):
                assert ints(result).tobytes() == wanted.tobytes(), name
            call()


def test_launches_go_to_the_current_stream_of_torch(on_cuda, streams):
    """Work on a stream that is captured is kept in the graph, and not done."""
    import cupy

    if torch.cuda.is_available():
        pytest.skip("PyTorch captures its own streams; see the test of torch.cuda.graph")
    x, zeros = on_cuda(torch.arange(12.0).reshape(3, 4)), torch.zeros(3, 4)
    flipped, out, known, many = x.flip(0), *(on_cuda(zeros.clone()) for _ in range(3))
    gs.slice(x, [-1], [-9], steps=[-1], out=known)
    gs.split(x, [1, 2])
    known.zero_()
    stream = cupy.cuda.Stream(non_blocking=True)
    streams.cuda_stream = stream.ptr
    with stream:
        stream.begin_capture()
    current = cupy.cuda.get_current_stream()
    gs.slice(x, [-1], [-9], steps=[-1], out=known)
    gs.contiguous([flipped], out=[out])
    with gs.trace():
        gs.split(x, [1, 2], out=[many[:1], many[1:]])
    assert cupy.cuda.get_current_stream() == current
    with stream:
        graph = stream.end_capture()
    assert [y.tolist() for y in (known, out, many)] == [zeros.tolist()] * 3
    with stream:
        graph.launch()
    stream.synchronize()
    assert known.tolist() == out.tolist() == x.flip(0).tolist()
    assert many.tolist() == x.tolist()


def test_a_capture_of_torch(on_cuda):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    gs.slice(x, [-1], [-9], steps=[-1])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = gs.slice(x, [-1], [-9], steps=[-1])
    x += 1
    graph.replay()
    assert torch.equal(y, x.flip(0))


def test_the_default_stream_is_not_that_of_the_thread(on_cuda):
    """CuPy may have been told to use one default stream per thread. PyTorch has one for all."""
    import cupy

    from gpuslice.engine import torch_cuda

    with torch_cuda.on_current_streams([0]):
        assert cupy.cuda.get_current_stream().ptr == (
            torch.cuda.current_stream(0).cuda_stream or cupy.cuda.runtime.streamLegacy
        )
    x = on_cuda(torch.arange(12.0))
    assert gs.slice(x, [-1], [-99], steps=[-1]).tolist() == x.flip(0).tolist()


def test_tensors_on_two_devices(on_cuda):
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    x, y = on_cuda(torch.arange(12.0).reshape(3, 4), 1), on_cuda(torch.arange(12.0).reshape(3, 4), 0)
    for _ in range(2):
        assert_bits(gs.contiguous(x.T), ints(x).T, x)
        first, second = gs.contiguous([x, y])
        assert_bits(first, ints(x), x)
        assert_bits(second, ints(y), y)
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must be on device cuda:1; got cuda:0"):
            gs.slice(x, [0], [3], out=y)
    assert cupy.cuda.runtime.getDevice() == 0


KINDS = {
    "plain": (lambda x: x, True),
    "without items": (lambda x: x[:0], True),
    "requires grad": (lambda x: x.clone().requires_grad_(), False),
    "conjugate": (lambda x: torch.complex(x, x).conj(), False),
    "negative": (lambda x: torch.complex(x, x).conj().imag, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_function_decides_which_tensors_are_plain(kind, on_cuda):
    make, expected = KINDS[kind]
    x = make(on_cuda(torch.arange(15.0).reshape(5, 3)))
    assert torch_tensors.is_plain(x) == expected
    for _ in range(2):
        with gs.trace() as t:
            result = gs.slice(x, [-1], [-9], steps=[-1])
        assert {launch.executor for launch in t.launches} <= {"cuda" if expected else "generic"}
        wanted = x.detach().resolve_conj().resolve_neg().flip(0)
        assert torch.equal(result.detach().cpu(), wanted.cpu())
        assert torch.equal(gs.slice(x, [-1], [-9], steps=[-1]).detach().cpu(), wanted.cpu())


def test_without_cupy_torch_copies(on_cuda, monkeypatch):
    monkeypatch.setattr(lowering, "torch_cuda", lambda: None)
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    for _ in range(2):
        with gs.trace() as t:
            result = gs.slice(x, [-1], [-9], steps=[-1])
        assert [launch.executor for launch in t.launches] == ["generic"]
        assert result.tolist() == gs.slice(x, [-1], [-9], steps=[-1]).tolist() == x.flip(0).tolist()


def test_a_device_without_kernels(on_cuda, monkeypatch):
    from gpuslice.engine import torch_cuda

    monkeypatch.setattr(torch_cuda, "_has_kernels", lambda device: False)
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    with gs.trace() as t:
        assert gs.slice(x, [-1], [-9], steps=[-1]).tolist() == x.flip(0).tolist()
    assert [launch.executor for launch in t.launches] == ["generic"]


def test_nodes(on_cuda):
    x = on_cuda(torch.arange(24.0).reshape(4, 6))
    for _ in range(2):
        _, right = run_node(node("Split", ["x", ""], ["y", "z"], axis=1, num_outputs=2), [x], opset=18)
        assert_bits(right, ints(x)[:, 3:], x)
        (flipped,) = run_node(node("Slice", ["x", "s", "e", "a", "t"]), [x, [-1], [-9], [0], [-1]], opset=13)
        assert_bits(flipped, ints(x)[::-1], x)


def test_autograd_sees_that_an_output_was_written(on_cuda):
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    out = x.new_empty((3, 4))
    for _ in range(2):
        before = out._version
        gs.slice(x, [0], [3], out=out)
        assert out._version > before


def test_errors_change_nothing(on_cuda):
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    before = ints(x)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must not overlap an input"):
            gs.slice(x, [-1], [-9], steps=[-1], out=x)
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: out must be on device cuda:0; got cpu"):
            gs.slice(x, [-1], [-9], steps=[-1], out=torch.empty(3, 4))
        gs.slice(x, [-1], [-9], steps=[-1])
    assert ints(x).tobytes() == before.tobytes()


def test_warm_up(on_cuda):
    x = on_cuda(torch.arange(12.0).reshape(3, 4))
    out = on_cuda(torch.zeros(3, 4))
    for _ in range(2):
        assert gs.warm_up(gs.slice, x, [-1], [-9], steps=[-1], out=out)
        assert out.tolist() == torch.zeros(3, 4).tolist()
    gs.slice(x, [-1], [-9], steps=[-1], out=out)
    assert gs.warm_up(gs.slice, x, [-1], [-9], steps=[-1], out=out)
    assert out.tolist() == x.flip(0).tolist()
