"""PyTorch's tensors: which go to NumPy and the kernels, to the bit, and which stay with PyTorch's own operations."""

import subprocess
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from helpers import MOVES, model, node, tensor_info

import gpuslice as gs
from gpuslice.onnx import Graph, run_node
from gpuslice.versions import newest

torch = pytest.importorskip("torch", reason="torch is not installed")

import torch.autograd.forward_ad as forward_ad  # noqa: E402
from tensors import BACK, BITS, LAYOUTS, random_bits  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from gpuslice import torch_tensors  # noqa: E402

# What PyTorch says of its own: its functions use torch.jit, which it has deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]

ALL = torch_tensors._DTYPES.keys() | {getattr(torch, name) for name in dir(torch) if name.startswith(("float", "complex", "bfloat", "bits"))}  # fmt: skip
DTYPES = sorted({dtype for dtype in ALL if isinstance(dtype, torch.dtype)}, key=str)


def ints(x):
    """Return the items of a plain tensor as integers of their size, in NumPy."""
    return x.detach().contiguous().view(BITS[x.element_size()]).numpy()


def assert_bits(actual, expected, dtype):
    assert type(actual) is torch.Tensor
    assert actual.dtype == dtype
    assert actual.is_contiguous()
    assert tuple(actual.shape) == expected.shape
    assert ints(actual).tobytes() == np.ascontiguousarray(expected).tobytes()


def backward(x):
    return gs.slice(x, [-1], [-99], axes=[0], steps=[-2])


def reference(x):
    """Do what `backward` does for an odd length."""
    return torch.flip(x, (0,))[::2].clone()


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_to_the_bit(dtype, kernels, request):
    if kernels:
        request.getfixturevalue("kernels_for_all")
    for name, layout in LAYOUTS.items():
        x = layout(random_bits(dtype, 6, 7).view(BITS[dtype.itemsize])).view(dtype)
        expected = ints(x)
        for _ in range(2):  # the second call is known
            assert_bits(gs.slice(x, *BACK), expected[::-1, ::-2], dtype)
            out = torch.empty(6, 4, dtype=dtype)
            assert gs.slice(x, *BACK, out=out) is out
            assert_bits(out, expected[::-1, ::-2], dtype)
            assert_bits(gs.contiguous(x.T), expected.T, dtype)
            outs = [torch.empty(2, 7, dtype=dtype), torch.empty(4, 7, dtype=dtype)]
            for parts in (gs.split(x, [2, 4]), gs.split(x, [2, 4], one_block=True), gs.split(x, [2, 4], out=outs)):
                assert_bits(parts[0], expected[:2], dtype)
                assert_bits(parts[1], expected[2:], dtype)
        rows = gs.split_to_sequence(x, keepdims=0)
        assert_bits(gs.sequence_at(rows, -1), expected[-1], dtype)
        assert_bits(gs.concat_from_sequence(rows, axis=1, new_axis=1), expected.T, dtype)
        assert name
        assert ints(x).tobytes() == expected.tobytes()


@pytest.fixture
def torch_threads(request):
    """The number of PyTorch's threads, by which it is decided who copies."""
    before = torch.get_num_threads()
    gs.clear_caches()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
    gs.clear_caches()


@pytest.mark.parametrize("torch_threads", [1, 2], indirect=True)
@pytest.mark.parametrize("side", [256, 1100])
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.uint32, torch.float8_e5m2, torch.float64], ids=str
)
def test_larger_tensors(dtype, side, torch_threads):
    """They may be copied by PyTorch's own operations, which is decided by size, layout and threads."""
    x = random_bits(dtype, side, side)
    expected = ints(x)
    views = {
        "flip": ([-1], [-(2**31)], [1], [-1], expected[:, ::-1]),
        "both": ([-1, -1], [-(2**31)] * 2, [0, 1], [-1, -1], expected[::-1, ::-1]),
        "rows": ([-1], [-(2**31)], [0], [-3], expected[::-3]),
        "crop": ([1, 1], [-1, 2**31], [0, 1], [1, 1], expected[1:-1, 1:]),
        "whole": ([], [], [], [], expected),
    }
    for *arguments, wanted in views.values():
        out = torch.empty(wanted.shape, dtype=dtype)
        for _ in range(2):
            assert_bits(gs.slice(x, *arguments), wanted, dtype)
            assert_bits(gs.slice(x, *arguments, out=out), wanted, dtype)
    for axis in (0, 1):
        for part, wanted in zip(gs.split(x, num_outputs=2, axis=axis), np.split(expected, 2, axis), strict=True):
            assert_bits(part, wanted, dtype)
    for _ in range(2):
        assert_bits(gs.contiguous(x.T), expected.T, dtype)
        for axis in (0, 1):
            wanted = np.concatenate([expected, expected[:, ::-1]], axis)
            parts, out = [x, gs.slice(x, [-1], [-(2**31)], [1], [-1])], torch.empty(wanted.shape, dtype=dtype)
            assert_bits(gs.concat_from_sequence(parts, axis=axis), wanted, dtype)
            assert gs.concat_from_sequence(parts, axis=axis, out=out) is out
            assert_bits(out, wanted, dtype)
            wanted = np.stack([expected, expected.T], axis)
            assert_bits(gs.concat_from_sequence([x, x.T], axis=axis, new_axis=1), wanted, dtype)


def test_joins_that_are_known():
    """The second call with tensors of the same kinds is a look-up. What differs from them is looked at again."""
    x, y = plain(), plain() + 15
    leaf, negative = plain().requires_grad_(), torch.complex(plain(), plain()).conj().imag
    wide = torch.zeros(5, 8)
    for _ in range(2):
        assert torch.equal(gs.concat_from_sequence([x, y], axis=0), torch.cat([x, y]))
        assert torch.equal(gs.concat_from_sequence((x, x), axis=1), torch.cat([x, x], 1))
        assert torch.equal(gs.concat_from_sequence([x, y], axis=1, new_axis=1), torch.stack([x, y], 1))
        assert torch.equal(gs.concat_from_sequence([x, negative], axis=0), torch.cat([x, -plain()]))
        assert gs.concat_from_sequence([x, leaf], axis=0).requires_grad
        out = torch.empty(10, 3)
        assert gs.concat_from_sequence([x, x], axis=0, out=out) is out
        assert torch.equal(out, torch.cat([x, x]))
        assert out._version > 0
        gs.concat_from_sequence([x, y], axis=1, out=wide[:, 1:7])
        assert torch.equal(wide[:, 1:7], torch.cat([x, y], 1))
        assert not wide[:, ::7].any()
        both = torch.cat([x, y])
        for parts in ([both[:5], y], [x, both[5:]]):
            with pytest.raises(ValueError, match=f"^{newest('ConcatFromSequence')}: out must not overlap an input"):
                gs.concat_from_sequence(parts, axis=0, out=both)
        with pytest.raises(TypeError, match=f"^{newest('ConcatFromSequence')}: seq must hold one dtype"):
            gs.concat_from_sequence([x, y.double()], axis=0)
        with pytest.raises(TypeError, match=f"^{newest('ConcatFromSequence')}: seq must hold arrays of one library"):
            gs.concat_from_sequence([x, y.numpy()], axis=0)


def test_many_outputs():
    x, count = plain(), 5
    outs = [torch.empty(1, 3) for _ in range(count)]
    for _ in range(2):
        assert gs.split(x, num_outputs=count, out=outs)[3] is outs[3]
        assert torch.equal(torch.cat(outs), x)
        assert gs.contiguous([row + 1 for row in x.split(1)], out=outs)[0] is outs[0]
        assert torch.equal(torch.cat(outs), x + 1)
        for call in (lambda outs: gs.split(x, num_outputs=count, out=outs), lambda outs: gs.contiguous(list(x.split(1)), out=outs)):  # fmt: skip
            for bad, error in {
                "requires grad": ([*outs[:4], torch.empty(1, 3).requires_grad_()], RuntimeError),
                "twice": ([*outs[:4], outs[0]], ValueError),
                "shape": ([*outs[:4], torch.empty(2, 3)], ValueError),
                "an input": ([*outs[:4], x[:1]], ValueError),
                "dtype": ([*outs[:4], torch.empty(1, 3, dtype=torch.float64)], TypeError),
            }.values():
                with pytest.raises(error):
                    call(bad)
    assert torch.equal(x, plain())
    # More parts are made when they are read.
    rows = torch.arange(60.0).reshape(20, 3)
    for kind in (rows, rows.requires_grad_(), torch.complex(rows, rows).conj().imag):
        for parts in (gs.split_to_sequence(kind, keepdims=0), gs.split(kind, num_outputs=20), gs.split(kind, num_outputs=20, one_block=True)):  # fmt: skip
            assert torch.equal(torch.cat([part.reshape(1, 3) for part in parts]), kind.resolve_neg())
            assert parts[0].requires_grad == kind.requires_grad
    rows, outs = rows.detach(), [torch.empty(3) for _ in range(20)]
    gs.split_to_sequence(rows, keepdims=0, out=outs)
    assert torch.equal(torch.stack(outs), rows)
    # Several dtypes in one call.
    outs = [torch.empty(3, 5), torch.empty(3, 5, dtype=torch.float64)]
    gs.contiguous([x.T, x.double().T], out=outs)
    assert torch.equal(outs[0].double(), outs[1])
    assert torch.equal(outs[0], x.T)


class Subclass(torch.Tensor):
    pass


def plain():
    return torch.arange(15.0).reshape(5, 3)


def in_mode(make):
    with make() as mode:
        return mode, mode.from_tensor(plain())


# Tensors by kind, in a context, and whether NumPy may look into their memory there.
KINDS = {
    "plain": (plain, nullcontext, True),
    "transposed": (lambda: plain().T.contiguous().T, nullcontext, True),
    "without items": (lambda: plain()[:0], nullcontext, True),
    "parameter": (lambda: torch.nn.Parameter(plain()), nullcontext, False),
    "parameter, no_grad": (lambda: torch.nn.Parameter(plain()), torch.no_grad, True),
    "buffer": (lambda: torch.nn.Buffer(plain()), nullcontext, True),
    "requires grad": (lambda: plain().requires_grad_(), nullcontext, False),
    "no leaf": (lambda: plain().requires_grad_() * 1, nullcontext, False),
    "requires grad, inference": (lambda: plain().requires_grad_(), torch.inference_mode, True),
    "device context": (plain, lambda: torch.device("meta"), True),
    "autocast": (plain, lambda: torch.autocast("cpu"), True),
    "conjugate": (lambda: torch.complex(plain(), plain()).conj(), nullcontext, False),
    "negative": (lambda: torch.complex(plain(), plain()).conj().imag, nullcontext, False),
    "zero": (lambda: torch._efficientzerotensor((5, 3)), nullcontext, False),
    "subclass": (lambda: plain().as_subclass(Subclass), nullcontext, False),
    "meta": (lambda: plain().to("meta"), nullcontext, False),
    "fake": (lambda: in_mode(FakeTensorMode)[1], nullcontext, False),
    "in a mode": (plain, lambda: FakeTensorMode(allow_non_fake_inputs=True), False),
    "dual level": (plain, forward_ad.dual_level, False),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_one_function_decides_which_tensors_are_plain(kind):
    make, context, expected = KINDS[kind]
    x = make()
    with context():
        assert torch_tensors.is_plain(x) == expected
        with gs.trace() as t:
            result = gs.contiguous(x)
        assert {launch.executor for launch in t.launches} <= ({"numpy", "host"} if expected else {"generic"})
        assert result.is_contiguous()
        again = gs.slice(x, [0], [5])
    if not (x.is_meta or "fake" in kind or "mode" in kind):
        for copied in (result, again):
            assert torch.equal(copied.detach(), x.detach().resolve_conj().resolve_neg())
            assert copied.is_conj() == copied.is_neg() == False  # noqa: E712


def seen_by(transform):
    """Return whether a tensor is plain inside of a transformed function."""
    seen = []
    transform(lambda x: (seen.append(torch_tensors.is_plain(x)), (x * x).sum())[1])
    return seen


def test_wrapped_tensors_are_not_plain():
    x = plain()
    transforms = {
        "vmap": lambda f: torch.func.vmap(f)(x),
        "grad": lambda f: torch.func.grad(f)(x),
        "jvp": lambda f: torch.func.jvp(f, (x,), (x,)),
        "functionalize": lambda f: torch.func.functionalize(f)(x),
        "make_fx": lambda f: make_fx(f)(x),
        "jit.trace": lambda f: torch.jit.trace(f, x, check_trace=False),
    }
    for name, transform in transforms.items():
        assert set(seen_by(transform)) == {False}, name
        assert torch_tensors.is_plain(x)


def test_inference_tensors_are_written_in_inference_mode_only():
    with torch.inference_mode():
        x = plain()
        assert torch_tensors.is_plain(x, written=True)
        assert gs.contiguous(plain() + 1, out=x) is x
        assert gs.contiguous(x).is_inference()
    assert torch_tensors.is_plain(x)
    assert not torch_tensors.is_plain(x, written=True)
    with pytest.raises(RuntimeError, match="^contiguous: out is an inference tensor"):
        gs.contiguous(plain(), out=x)
    assert torch.equal(x, plain() + 1)


def test_negative_bit():
    x = torch.tensor([1 + 2j, 3 + 4j, 5 - 6j]).conj().imag
    assert x.is_neg()
    assert backward(x).tolist() == x.resolve_neg().flip(0)[::2].tolist() == [6, -2]
    assert gs.contiguous(x).tolist() == x.resolve_neg().tolist()
    out = torch.empty(3)
    assert gs.contiguous(x, out=out).tolist() == x.resolve_neg().tolist()
    target = torch.zeros(3, dtype=torch.complex64)
    gs.contiguous(torch.tensor([1.0, 2.0, 3.0]), out=target.conj().imag)
    assert target.imag.tolist() == [-1, -2, -3]
    assert [part.tolist() for part in gs.split(x, [1, 2])] == [[-2], [-4, 6]]


FUNCTIONS = {
    **{name: move for name, (move, _) in MOVES.items()},
    "forward": lambda x: gs.slice(x, [1], [4], axes=[0]),
    "parts": lambda x: gs.split(x, num_outputs=2, axis=0),
    "one block": lambda x: gs.split(x, [1, 4], axis=0, one_block=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    function = FUNCTIONS[name]
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(function, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, x)


def test_transforms():
    x = plain().double()
    square = lambda f: lambda x: (f(x) ** 3).sum()  # noqa: E731
    for transform in (torch.func.grad, torch.func.hessian):
        assert torch.equal(transform(square(backward))(x), transform(square(reference))(x))
    for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.functionalize):
        assert torch.equal(transform(backward)(x), transform(reference)(x))
    assert torch.equal(torch.func.jvp(backward, (x,), (x + 1,))[1], reference(x + 1))
    for copy in (True, None):
        flipped = torch.func.vmap(partial(gs.slice, starts=[-1], ends=[-99], steps=[-1], copy=copy))(x)
        assert torch.equal(flipped, x.flip(1))
        parts = torch.func.vmap(partial(gs.split, split=[1, 2], copy=copy))(x)
        assert torch.equal(torch.cat(parts, 1), x)
    assert torch.equal(torch.func.vmap(backward, in_dims=1, out_dims=1)(x), reference(x))
    assert torch.equal(torch.func.vmap(lambda y: y + backward(x))(torch.zeros(2, 3, 3))[1], reference(x))
    small = x.to(torch.float8_e5m2)
    assert torch.equal(torch.func.vmap(backward, in_dims=1, out_dims=1)(small).float(), reference(small.float()))


def test_dual_tensors_keep_their_tangents():
    for context in (nullcontext, torch.no_grad):
        with forward_ad.dual_level(), context():
            tangent = forward_ad.unpack_dual(backward(forward_ad.make_dual(plain(), plain() + 1))).tangent
            assert torch.equal(tangent, reference(plain() + 1))


def test_tracers_record_operations():
    class Module(torch.nn.Module):
        def forward(self, x):
            return backward(x), gs.split(x, num_outputs=2, axis=0)

    x = plain()
    for strict in (False, True):
        first, parts = torch.export.export(Module(), (x,), strict=strict).module()(x + 1)
        assert torch.equal(first, reference(x + 1))
        assert torch.equal(torch.cat(parts), x + 1)
    assert torch.equal(make_fx(backward)(x)(x + 1), reference(x + 1))
    assert torch.equal(make_fx(backward, tracing_mode="symbolic")(x)(x + 1), reference(x + 1))
    assert torch.equal(torch.jit.trace(backward, x)(x + 1), reference(x + 1))
    assert backward(x.to("meta")).shape == (3, 3)
    bits = x.to(torch.int32).view(torch.uint32)
    with FakeTensorMode() as mode:
        assert [part.shape for part in gs.split(mode.from_tensor(x), [2, 3])] == [(2, 3), (3, 3)]
        wide = mode.from_tensor(bits)
        assert (backward(wide).shape, backward(wide).dtype) == ((3, 3), torch.uint32)


# Calls with one tensor as their result, and whether PyTorch can prove that it holds for all lengths in a range.
OF_ANY_LENGTH = {
    "to the end": (lambda x: gs.slice(x, [1], [2**63 - 1]), True),
    "but the last": (lambda x: gs.slice(x, [0], [-1]), True),
    "the last two": (lambda x: gs.dynamic_slice(x, [-2], [2**63 - 1]), True),
    "backward": (lambda x: gs.slice(x, [-1], [-(2**63)], steps=[-1]), True),
    "step 2": (lambda x: gs.slice(x, [0], [2**63 - 1], steps=[2]), False),
    "step -2": (backward, False),
    "to the length": (lambda x: gs.slice(x, [1], [x.shape[0]]), True),
    "sizes": (lambda x: gs.split(x, [2, x.shape[0] - 2])[1], True),
    "half": (lambda x: gs.split_to_sequence(x, x.shape[0] // 2)[0], False),
    "num_outputs": (lambda x: gs.split(x, num_outputs=2)[1], False),
}


@pytest.mark.parametrize("name", OF_ANY_LENGTH)
def test_tracers_keep_lengths(name):
    """What was traced with 6 rows is right for 10."""
    function, provable = OF_ANY_LENGTH[name]

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    x, other = torch.arange(12.0).reshape(6, 2), torch.arange(20.0).reshape(10, 2)
    assert torch.equal(make_fx(function, tracing_mode="symbolic")(x)(other), function(other))
    dims = [torch.export.Dim.AUTO, *([torch.export.Dim("rows", min=4, max=100)] if provable else [])]
    for dim in dims:
        for strict in (False, True):
            program = torch.export.export(Module(), (x,), dynamic_shapes=({0: dim},), strict=strict)
            assert torch.equal(program.module()(other), function(other))


def test_no_items_behind_the_end_of_a_storage():
    x = torch.arange(20.0).reshape(4, 5)
    for view in (x[4:, 1:], x[:, 1:].split([4, 0])[1]):
        assert gs.contiguous(view).shape == (0, 4)
        assert [part.shape for part in gs.split(view, [2, 2], axis=1)] == [(0, 2), (0, 2)]
    assert torch.equal(gs.concat_from_sequence([x[:2, 3:], x[4:, 3:]], axis=0), x[:2, 3:])
    assert gs.contiguous(x[:0, 1:], out=x[4:, 1:]).shape == (0, 4)


COMPILED = {
    **FUNCTIONS,
    "dynamic_slice": lambda x: gs.dynamic_slice(x, [0], [2]),
    "view": lambda x: gs.slice(x, [0], [2], copy=None),
    "many parts": lambda x: gs.split(x.reshape(-1), num_outputs=15),
    "rows of more": lambda x: tuple(gs.split_to_sequence(x.repeat(8, 1), keepdims=0)),
    "list": lambda x: gs.contiguous([x.T, x]),
    "at": lambda x: gs.sequence_at(gs.sequence_insert(gs.sequence_erase(gs.split_to_sequence(x, 2)), x), -1),
    "construct": lambda x: gs.concat_from_sequence(gs.sequence_construct(x, x), axis=0),
    "length": lambda x: gs.sequence_length([x, x]),
    "out": lambda x: gs.slice(x, [0], [2], out=x.new_empty(2, 3)),
    "out of an attribute": lambda x: gs.contiguous(x.T, out=x.new_empty(3, 5)),
    "join, out": lambda x: gs.concat_from_sequence([x.T, x.T], axis=0, out=x.new_empty(6, 5)),
    "sequence": lambda x: gs.Sequence([x, x + 1])[1],
}


@pytest.mark.parametrize("name", COMPILED)
def test_compile(name):
    """The whole function is one graph, without a warning (pytest makes them errors)."""
    torch._dynamo.reset()
    function = COMPILED[name]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(plain()), function(plain()), rtol=0, atol=0)


def test_compile_with_symbolic_shapes_and_derivatives():
    torch._dynamo.reset()
    compiled = torch.compile(backward, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (5, 7, 9):
        x = torch.arange(rows * 2.0).reshape(rows, 2).requires_grad_()
        y = compiled(x)
        assert torch.equal(y, reference(x))
        y.backward(torch.ones_like(y))
        assert x.grad.sum().item() == y.numel()


def test_compile_as_the_first_call():
    """Nothing of a call is known, and the module for tensors is not imported yet, when torch.compile follows it."""
    code = (
        "import warnings; warnings.simplefilter('error'); import torch, gpuslice as gs\n"
        "f = torch.compile(lambda x: gs.slice(x, [-1], [-9], steps=[-1]), fullgraph=True, backend='eager')\n"
        "print(f(torch.arange(3)).tolist(), f(torch.arange(3)).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[2, 1, 0] [2, 1, 0]\n", done.stderr


def test_out_is_refused_where_autograd_would_record_it():
    leaf, x = plain().requires_grad_(), plain()
    calls = {
        "Slice": (lambda: gs.slice(leaf, [0], [5], out=x), "the input"),
        "Split": (lambda: gs.split(x, [2, 3], out=[plain()[:2], plain()[:3].requires_grad_()]), "out"),
        "contiguous": (lambda: gs.contiguous(leaf, out=x), "the input"),
    }
    for operator, (call, which) in calls.items():
        name = operator if operator == "contiguous" else newest(operator)
        with pytest.raises(RuntimeError, match=f"^{name}: out does not support automatic differentiation, but {which} requires grad"):  # fmt: skip
            call()
        assert torch.equal(x, plain())
        assert not x.requires_grad
    with torch.no_grad():
        assert gs.slice(x, [-1], [-9], steps=[-1], out=leaf) is leaf
    assert torch.equal(leaf, x.flip(0))
    assert leaf.is_leaf


def test_autograd_sees_that_an_output_was_written():
    for call in (lambda out: gs.slice(plain(), [0], [5], out=out), lambda out: gs.split(plain(), [5], out=[out])):
        for _ in range(2):
            weight, out = plain().requires_grad_(), plain()
            loss = (weight * out).sum()
            call(out)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()


BAD_OUT = {
    "shape": (lambda x: torch.empty(4, 3), ValueError, "out must have shape"),
    "dtype": (lambda x: torch.empty(5, 3, dtype=torch.float64), TypeError, "out must have dtype torch.float32"),
    "bits": (lambda x: torch.empty(5, 3, dtype=torch.int32), TypeError, "out must have dtype torch.float32"),
    "NumPy": (lambda x: np.empty((5, 3), np.float32), TypeError, "out must be an array of torch; got one of numpy"),
    "input": (lambda x: x, ValueError, "out must not overlap an input"),
    "itself": (lambda x: torch.empty(1, 3).expand(5, 3), ValueError, "out must not overlap itself"),
    "meta": (lambda x: torch.empty(5, 3, device="meta"), ValueError, "out must be on device cpu; got meta"),
    "sparse": (lambda x: x.to_sparse(), TypeError, "out must be a dense tensor; got a tensor of layout torch.sparse_coo"),
    "list": (lambda x: [x], TypeError, "out must be an array; got list"),
    "nested": (lambda x: torch.nested.nested_tensor([torch.ones(2)]), TypeError, "out must be a dense tensor; got a nested tensor"),
    "subclass": (lambda x: x.as_subclass(Subclass), ValueError, "out must not overlap an input"),
    "subclass, itself": (lambda x: torch.empty(7).as_subclass(Subclass).as_strided((5, 3), (1, 1)), ValueError, "out must not overlap itself"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", BAD_OUT)
def test_bad_out(kind):
    make, error, message = BAD_OUT[kind]
    x = plain()
    for _ in range(2):
        with pytest.raises(error, match=f"^{newest('Slice')}: {message}"):
            gs.slice(x, [-1], [-9], steps=[-1], out=make(x))
        gs.slice(x, [-1], [-9], steps=[-1])
    assert torch.equal(x, plain())


def test_outputs_of_subclasses_lie_apart():
    x, block = plain().as_subclass(Subclass), torch.empty(6, 3).as_subclass(Subclass)
    with pytest.raises(ValueError, match=rf"^{newest('Split')}: out\[1\] must not overlap out\[0\]"):
        gs.split(x, [2, 3], out=[block[:2], block[1:4]])
    out = torch.empty(3, 3).as_subclass(Subclass)
    assert gs.slice(x, [-1], [-9], steps=[-2], out=out) is out
    assert torch.equal(out, reference(plain()))


def test_conjugate_views_without_a_flip_of_their_own():
    x = torch.tensor([1 + 2j, 3 + 4j, 5 - 6j], dtype=torch.complex32)
    assert backward(x.conj().reshape(3, 1)).tolist() == [[5 + 6j], [1 - 2j]]
    with pytest.raises(
        TypeError, match=f"^{newest('Slice')}: data of dtype torch.complex32 must not require grad to go"
    ):
        backward(x.reshape(3, 1).requires_grad_())


def test_more_axes_than_numpy_has():
    x = torch.ones((1,) * 70)
    assert gs.slice(x, [0], [1]).shape == x.shape
    out = torch.zeros((1,) * 70)
    assert gs.concat_from_sequence([x], axis=0, out=out) is out
    assert out.sum() == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x, values: gs.slice(x, values, [2]),
        lambda x, values: gs.slice(x, [values[0]], [2]),
        lambda x, values: gs.split(x, values),
        lambda x, values: gs.split_to_sequence(x, values[0])[0],
        lambda x, values: gs.sequence_at([x], values),
    ],
)
def test_values_that_are_not_known_are_refused(call):
    with pytest.raises(
        TypeError, match="must be known when the call is made; got Tensor of torch: .* meta has no values"
    ):
        call(plain(), torch.empty(1, dtype=torch.int64, device="meta"))
    with pytest.raises(TypeError, match="must be known when the call is made; got Tensor of torch: torch.vmap makes"):
        torch.vmap(lambda values: call(plain(), values))(torch.zeros(3, 1, dtype=torch.int64))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["sparse", "csr", "mkldnn", "quantized", "nested", "jagged", "masked"])
def test_tensors_with_more_than_items_are_refused(kind):
    x, rows = plain(), [torch.zeros(2), torch.zeros(3)]
    make, message = {
        "sparse": (x.to_sparse, r"a tensor of layout torch.sparse_coo. x.to_dense\(\) gives one"),
        "csr": (x.to_sparse_csr, r"a tensor of layout torch.sparse_csr. x.to_dense\(\) gives one"),
        "mkldnn": (x.to_mkldnn, r"a tensor of layout torch._mkldnn. x.to_dense\(\) gives one"),
        "quantized": (lambda: torch.quantize_per_tensor(x, 1.0, 0, torch.qint8), "a quantized tensor of dtype torch.qint8. x.dequantize"),
        "nested": (lambda: torch.nested.nested_tensor(rows), "a nested tensor. torch.nested.to_padded_tensor"),
        "jagged": (lambda: torch.nested.nested_tensor(rows, layout=torch.jagged), "a nested tensor. torch.nested.to_padded_tensor"),
        "masked": (lambda: torch.masked.masked_tensor(x, x > 2), r"a MaskedTensor, whose mask would be lost. x.to_tensor\(value\)"),
    }[kind]  # fmt: skip
    bad = make()
    for _ in range(2):
        with pytest.raises(TypeError, match=f"^{newest('Slice')}: data must be a dense tensor; got {message}"):
            gs.slice(bad, [0], [1])
        with pytest.raises(TypeError, match=f"^{newest('Split')}: input must be a dense tensor; got {message}"):
            gs.split(bad, num_outputs=1)
        with pytest.raises(TypeError, match=rf"^{newest('SequenceConstruct')}: inputs\[0\] must be a dense tensor"):
            gs.sequence_construct(bad)
        gs.slice(x, [0], [1])


def test_storages_may_be_resized_before_and_after():
    x = plain()
    gs.slice(x, [0], [2], out=(out := torch.empty(2, 3)))
    assert x.untyped_storage().resizable()
    assert out.untyped_storage().resizable()
    gs.slice(x, [0], [5])
    x.untyped_storage().resize_(8)
    for call in (lambda: gs.slice(x, [0], [5]), lambda: gs.contiguous(x), lambda: gs.slice(plain(), [0], [5], out=x)):
        with pytest.raises(
            ValueError, match="must have its items in its storage; got a storage of 8 bytes, which was resized"
        ):
            call()


def test_a_result_is_in_memory_of_numpy():
    for x in (plain(), plain().to(torch.bfloat16)):
        result = gs.slice(x, [0], [5])
        assert result._base is None
        assert not result._is_view()
        assert result._version == 0 or x.dtype is torch.bfloat16
        with pytest.raises(RuntimeError, match="not resizable"):
            result.resize_(100)
        assert result.requires_grad_().is_leaf


def test_nodes_and_graphs():
    x = random_bits(torch.bfloat16, 4, 6)
    for _ in range(2):  # the second run is known
        _, z = run_node(node("Split", ["x", ""], ["y", "z"], axis=1, num_outputs=2), [x], opset=18)
        assert_bits(z, ints(x)[:, 3:], torch.bfloat16)
    assert not run_node(node("Split", ["x", ""], ["y"], num_outputs=1), [plain()], opset=18)[0].requires_grad
    assert run_node(node("Split", ["x", ""], ["y"], num_outputs=1), [plain().requires_grad_()], opset=18)[
        0
    ].requires_grad
    bounds = [torch.tensor([-1]), torch.tensor([-9]), torch.tensor([0]), torch.tensor([-1])]
    (flipped,) = run_node(node("Slice", ["x", "s", "e", "a", "t"]), [x, *bounds], opset=13)
    assert_bits(flipped, ints(x)[::-1], torch.bfloat16)
    leaf = plain().requires_grad_()
    (half,) = run_node(node("Slice", ["x", "s", "e"]), [leaf, [0], [2]], opset=13)
    half.sum().backward()
    assert leaf.grad.tolist() == [[1.0] * 3] * 2 + [[0.0] * 3] * 3
    nodes = [
        node("Slice", ["x", "last", "before", "zero", "last"], ["back"]),
        node("SplitToSequence", ["back"], ["rows"], axis=0, keepdims=0),
        node("ConcatFromSequence", ["rows"], ["columns"], axis=1, new_axis=1),
        node("SequenceConstruct", ["x", "c"], ["both"]),
        node("ConcatFromSequence", ["both"], ["joined"], axis=0),
    ]
    constants = {"last": [-1], "before": [-99], "zero": [0], "c": np.ones((1, 3), np.float32)}
    graph = Graph(model(nodes, ["x"], [tensor_info("columns"), tensor_info("joined")], constants))
    for _ in range(2):
        results = graph.run({"x": plain()})
        assert torch.equal(results["columns"], plain().flip(0).T)
        assert torch.equal(results["joined"], torch.cat([plain(), torch.ones(1, 3)]))


def test_libraries_can_be_mixed_in_a_list():
    first, second, third = gs.contiguous([plain().T, np.ones((2, 2)).T, plain().requires_grad_().T])
    assert torch.equal(first, plain().T)
    assert type(second) is np.ndarray
    assert third.requires_grad
    outs = [torch.empty(3, 5), np.empty((2, 2))]
    given = gs.contiguous([plain().T, np.ones((2, 2))], out=outs)
    assert given[0] is outs[0]
    assert torch.equal(outs[0], plain().T)
    assert outs[1].sum() == 4
