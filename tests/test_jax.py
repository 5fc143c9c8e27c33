"""JAX: fresh results, transformations, the host kernels for large arrays on a CPU, sequences as containers."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from helpers import MOVES, compiled, model, node

import gpuslice as gs
from gpuslice.onnx import Graph

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

import jax.export  # noqa: E402

from gpuslice.engine import jax_arrays  # noqa: E402

LOW = -(2**63)
BACKWARD = ([-1, 0], [LOW, 9], [1, 0], [-2, 1])
INDEX = np.s_[:, ::-2]
# What takes all of an array, and so might return the array.
WHOLE = {
    "slice": lambda x: gs.slice(x, [0], [99]),
    "dynamic_slice": lambda x: gs.dynamic_slice(x, [0], [99]),
    "split": lambda x: gs.split(x, num_outputs=1)[0],
    "split_to_sequence": lambda x: gs.split_to_sequence(x, 99)[0],
    "sequence_at": lambda x: gs.sequence_at([x], 0),
    "concat_from_sequence": lambda x: gs.concat_from_sequence([x], axis=0),
    "contiguous": lambda x: gs.contiguous([x])[0],
    "a new axis": lambda x: gs.concat_from_sequence([x], axis=0, new_axis=1)[0],
}


def array(rows=3, columns=4, dtype=np.float32):
    return jnp.asarray(np.arange(1, 1 + rows * columns).reshape(rows, columns).astype(dtype))


@pytest.fixture(params=["by JAX", "by kernels"])
def large(request, monkeypatch):
    """Have the host kernels copy all they can, or nothing; return whether they do."""
    by_kernels = request.param == "by kernels"
    monkeypatch.setattr(jax_arrays, "_LEAST_BYTES", 0 if by_kernels else sys.maxsize)
    return by_kernels


@pytest.mark.parametrize("name", WHOLE)
def test_a_result_outlives_its_input(name, large):
    x = array()
    expected = np.asarray(x).copy()
    result = WHOLE[name](x)
    x.delete()
    assert (np.asarray(result) == expected).all()
    y = array()
    result = WHOLE[name](y)
    jax.jit(lambda y: y + 1, donate_argnums=0)(y)
    assert y.is_deleted()
    assert (np.asarray(result) == expected).all()
    jax.jit(lambda z: z + 1, donate_argnums=0)(result)  # the result's memory may be NumPy's


@pytest.mark.parametrize("name", MOVES)
def test_transformations(name, large):
    function, expected = MOVES[name]
    x = array()
    wanted = expected(np.asarray(x))
    assert (np.asarray(function(x)) == wanted).all()
    assert (np.asarray(jax.jit(function)(x)) == wanted).all()
    assert (np.asarray(jax.vmap(function)(jnp.stack([x, -x]))) == np.stack([wanted, -wanted])).all()
    taken = np.asarray(jax.grad(lambda x: (function(x) ** 2).sum())(x))
    assert (taken == np.where(np.isin(np.asarray(x), wanted), 2 * np.asarray(x), 0)).all()
    assert jax.eval_shape(function, x).shape == wanted.shape
    assert (np.asarray(jax.jvp(function, (x,), (x,))[1]) == wanted).all()
    assert (np.asarray(jax.jacrev(function)(x)).sum() == wanted.size).all()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_stack_copies_its_parts_once(axis, large, monkeypatch):
    """Without a copy of each that has the new axis: JAX has no views."""
    parts = [array(), array() + 1, -array()]
    expected = np.stack([np.asarray(part) for part in parts], axis)
    with monkeypatch.context() as patched:
        patched.setattr(jnp, "expand_dims", None)
        stacked = gs.concat_from_sequence(parts, axis=axis, new_axis=1)
    assert np.asarray(stacked).tobytes() == expected.tobytes()
    assert stacked.shape == expected.shape
    # In a graph a slice of it is views of its parts.
    nodes = [
        node("SequenceConstruct", ["a", "b", "c"], ["s"]),
        node("ConcatFromSequence", ["s"], ["z"], axis=axis, new_axis=1),
        node("Slice", ["z", "start", "end", "axis", "step"]),
    ]
    bounds = {"start": [-1], "end": [LOW], "axis": [axis], "step": [-2]}
    graph = Graph(model(nodes, ["a", "b", "c"], ["y"], bounds))
    taken = graph.run(dict(zip("abc", parts, strict=True)))["y"]
    assert np.asarray(taken).tobytes() == np.flip(expected, axis).take([0, 2], axis).tobytes()


def test_bounds_may_be_static():
    crop = jax.jit(gs.slice, static_argnums=(1, 2))
    assert (np.asarray(crop(array(), (1,), (3,))) == np.asarray(array())[1:3]).all()
    parts = jax.jit(partial(gs.split, num_outputs=2, axis=1))(array())
    assert [part.shape for part in parts] == [(3, 2), (3, 2)]
    # Bounds from an array that is not traced are known.
    start = jnp.asarray([1])
    assert jax.jit(lambda x: gs.slice(x, start, [3]))(array()).shape == (2, 4)


def test_functions_of_arrays_of_any_length():
    """Lengths that stay symbols are no hindrance along axes that are taken whole."""
    mirror = jax.jit(lambda x: gs.split(gs.slice(x, [-1], [LOW], [1], [-1]), num_outputs=2, axis=1))
    shape = jax.export.symbolic_shape("n, 4")
    exported = jax.export.export(mirror)(jax.ShapeDtypeStruct(shape, np.float32))
    for rows in (1, 3):
        x = array(rows)
        assert [part.tolist() for part in exported.call(x)] == [part.tolist() for part in mirror(x)]


TRACED = {
    "starts": lambda x, b: gs.slice(x, b, [2]),
    "starts in a list": lambda x, b: gs.slice(x, [b[0]], [2]),
    "split": lambda x, b: gs.split(x, b),
    "split, a size": lambda x, b: gs.split_to_sequence(x, b[0]),
    "position": lambda x, b: gs.sequence_at([x], b),
    "axis": lambda x, b: gs.concat_from_sequence([x], axis=b[0]),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_bounds_are_refused(name):
    argument = name.split(" ")[0].rstrip(",")
    with pytest.raises(
        TypeError, match=rf"-\d+: {argument} must be known when the call is made; got .*Tracer of jax.numpy: .*static"
    ):
        jax.jit(lambda b: TRACED[name](array(), b))(jnp.asarray([1]))


def test_sequences_are_containers():
    x = array()
    rows = jax.jit(lambda x: gs.split_to_sequence(x))(x)
    assert isinstance(rows, gs.Sequence)
    assert (rows.dtype, len(rows)) == ("float32", 3)
    assert jax.jit(lambda s: gs.concat_from_sequence(s, axis=1))(rows).shape == (1, 12)
    assert [g.tolist() for g in jax.grad(lambda s: (gs.concat_from_sequence(s, axis=0) ** 2).sum())(rows)] == [
        [row] for row in (2 * x).tolist()
    ]
    assert jax.tree.map(lambda row: row.astype(jnp.int8), rows).dtype == "int8"
    without_shapes = jax.tree.map(lambda row: None, rows)
    assert without_shapes.dtype == "float32"
    assert repr(without_shapes) == "Sequence(3 items, dtype='float32', shape=None)"
    assert "<td>None</td>" in without_shapes._repr_html_()
    assert jax.jit(lambda: gs.sequence_empty("int32"))().dtype == "int32"
    assert jax.tree.structure(rows) != jax.tree.structure(gs.Sequence([np.zeros(1)] * 3))


def test_a_sequence_that_was_made_before_jax_was_imported():
    code = (
        "import gpuslice as gs; empty = gs.sequence_empty('int8')\n"
        "import jax; gs.sequence_empty()\n"
        "print(jax.jit(lambda s: s)(empty).dtype)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "int8\n"


def test_scalar_types_of_jax():
    assert gs.sequence_empty(jnp.float32).dtype == "float32"
    assert gs.sequence_empty(jnp.bfloat16).dtype == "bfloat16"
    with pytest.raises(TypeError, match="got float8_e4m3fn$"):
        gs.sequence_empty(jnp.float8_e4m3fn)


@compiled
@pytest.mark.parametrize(
    "dtype", [jnp.bool, jnp.int8, jnp.uint16, jnp.float32, jnp.complex64, jnp.bfloat16, jnp.float8_e4m3fn, jnp.int4]
)
def test_jax_takes_what_the_kernels_wrote(dtype, monkeypatch, kernels_for_all):
    made = []
    aligned = jax_arrays._aligned
    monkeypatch.setattr(jax_arrays, "_LEAST_BYTES", 0)
    monkeypatch.setattr(jax_arrays, "_aligned", lambda *of: made.append(aligned(*of)) or made[-1])
    x = array(8, 100).astype(dtype)
    with gs.trace() as t:
        results = [
            gs.slice(x, *BACKWARD),
            *gs.split(x, num_outputs=4, axis=1),
            *gs.split_to_sequence(x, axis=1, keepdims=0),
        ]
    assert {launch.executor for launch in t.launches} == {"host"}
    assert t.allocations == [memory.nbytes for memory in made]
    expected = [np.asarray(x)[INDEX], *np.split(np.asarray(x), 4, axis=1), *np.asarray(x).T]
    for result, memory, wanted in zip(results, made, expected, strict=True):
        assert (result.dtype, result.committed) == (x.dtype, False)
        assert np.asarray(result).tobytes() == wanted.tobytes()
        # JAX keeps integers of four bits in another form.
        assert (result.unsafe_buffer_pointer() == memory.ctypes.data) == (dtype != jnp.int4)
    # More than one array, and parts that are joined.
    joined = gs.concat_from_sequence([x, results[0]], axis=1)
    assert np.asarray(joined).tobytes() == np.concatenate([x, results[0]], axis=1).tobytes()


def test_what_the_kernels_leave_to_jax(large):
    """Results have the dtype, the weak type and the device of the input."""
    with jax.enable_x64(True):
        wide = array(dtype=np.float64)
        assert gs.slice(wide, *BACKWARD).dtype == np.float64
    assert gs.slice(wide, *BACKWARD).dtype == np.float64
    weak = jnp.full((3, 4), 1.5)
    assert weak.weak_type
    assert gs.slice(weak, *BACKWARD).weak_type
    keys = jax.random.split(jax.random.key(0), (3, 4))
    assert (jax.random.key_data(gs.slice(keys, *BACKWARD)) == jax.random.key_data(keys)[INDEX]).all()


def test_a_moving_window_is_compiled_once():
    x = array(64, 8)
    gs.slice(x, [0], [5])
    before = jax_arrays._take._cache_size()
    for start in range(1, 50):
        assert gs.slice(x, [start], [start + 5])[0, 0] == x[start, 0]
    assert jax_arrays._take._cache_size() == before


def test_a_known_call_follows_its_arguments(large):
    """The second of two calls is a look-up; it is no reason to write to an array, or to keep one alive."""
    for x in (array(5, 4), array(5, 4) + 1, -array(5, 4)):
        for _ in range(2):
            assert (np.asarray(gs.slice(x, *BACKWARD)) == np.asarray(x)[INDEX]).all()
            assert [np.asarray(part).tolist() for part in gs.split(x, [1, 3], axis=1)] == [
                part.tolist() for part in np.split(np.asarray(x), [1], axis=1)
            ]
            assert (np.asarray(gs.contiguous(x)) == np.asarray(x)).all()
            for out in (x, jnp.zeros((5, 2)), np.zeros((5, 2), np.float32)):
                with pytest.raises(TypeError, match="out cannot be written|out must be an array of jax.numpy"):
                    gs.slice(x, *BACKWARD, out=out)
            with pytest.raises(TypeError, match=r"out\[0\] cannot be written"):
                gs.split(x, [1, 3], axis=1, out=[jnp.zeros((5, 1)), jnp.zeros((5, 3))])
    gs.clear_caches()


DEVICES = """
import sys
import jax, jax.numpy as jnp, numpy as np, gpuslice as gs
from gpuslice.engine import jax_arrays
from jax.sharding import NamedSharding, PartitionSpec
first, second = jax.devices()
reference = np.arange(64, dtype=np.float32).reshape(8, 8)
for least in (0, sys.maxsize):
    jax_arrays._LEAST_BYTES = least
    for x in (jax.device_put(reference, second), jax.device_put(reference, first), jnp.asarray(reference)):
        y = gs.slice(x, [-1], [-99], steps=[-1])
        assert (y.committed, y.device) == (x.committed, x.device)
        assert gs.sequence_length([x]).device == x.device
    with jax.default_device(second):
        z = jnp.asarray(reference)
        assert [gs.slice(a, [0], [9]).device for a in (z, y)] == [(a + 0).device for a in (z, y)]
    spread = jax.device_put(reference, NamedSharding(jax.make_mesh((2,), ("i",)), PartitionSpec("i")))
    for result in (gs.slice(spread, [-1], [-99], steps=[-1]), gs.concat_from_sequence([spread], axis=0)[::-1]):
        assert (np.asarray(result) == reference[::-1]).all() and len(result.devices()) == 2
    alone = jax.device_put(reference, NamedSharding(jax.make_mesh((1,), ("i",)), PartitionSpec("i", None)))
    rows = gs.split_to_sequence(alone, keepdims=0)
    assert [row.tolist() for row in rows] == reference.tolist()
print("done")
"""


def test_several_devices(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr
