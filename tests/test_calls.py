"""The compiled part of known calls does what the same functions do in Python, and Python alone is enough."""

import itertools
import mmap
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuslice.engine import calls, host_library, kernel_executor
from gpuslice.engine.calls import COMPILED
from gpuslice.engine.plan import PIXEL_BYTES, kernel_sources
from gpuslice.operators import known

needs_calls = pytest.mark.skipif(COMPILED is None, reason="the module for known calls is not built here")

X = np.zeros((2, 3))
ARRAYS = [
    X, np.ones((2, 3)), np.zeros((3, 2)).T, X[::-1], np.zeros((2, 3), "f4"), np.zeros((2, 3), ">f8"), np.zeros(6),
    np.zeros(()), np.zeros((0, 3)), np.zeros((2, 3), "S8"), np.zeros((2, 3), [("a", "f8")]), np.zeros((2, 3), object),
    X.view(np.matrix), np.float64(1), X.tolist(), None,
]  # fmt: skip
LARGEST = 2**63 - 1
BOUNDS = [
    ([0], [1], None, None), ((0,), (1,), None, None), ([0], [1], [0], None), ([0], [1], [1], None), ([0], [1], None, [1]),
    ([0], [1], [0], [1]), ([0, 1], [1, 1], None, None), ([0], [1, 1], [1], None), ([], [], None, None), ([], [], [], None),
    ([], [], None, []), ([-LARGEST - 1], [LARGEST], None, None), ([True], [1], None, None), ([1], [1.0], None, None),
    ([0], [1], [np.int64(0)], None), ([0], [1], None, [None]), (np.array([0]), [1], None, None), (None, None, None, None),
    ("0", "1", None, None), (0, 1, None, None),
]  # fmt: skip
SPLITS = [
    (None, 0, 2), (None, 0, None), (None, 1, 2), (None, 0, 3), ([1, 1], 0, None), ((1, 1), 0, None), ([1, 1], 0, 2),
    ([2], 0, None), (2, 0, None), (2, 0, 1), ([], 0, None), ([], 0, 0), (None, 0, 0), (-1, 0, 0), (None, True, 2),
    (None, 0, True), ([True, 1], 0, None), ([1.0], 0, None), (np.array([1, 1]), 0, None), (None, 0.0, None),
]  # fmt: skip
JOINS = [(0, 0), (0, 1), (1, 0), (-1, 0), (True, 0), (0, True), (0.0, 0), (None, 0)]


def alone(function, *arguments):
    """Return what a function of `known` does without the compiled module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "COMPILED", None)
        return function(*arguments)


@needs_calls
@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (known.key_of, [(array, *bounds) for array in ARRAYS for bounds in BOUNDS]),
        (known.key_of_split, [(array, *sizes) for array in ARRAYS for sizes in SPLITS]),
        (known.key_of_join, [(arrays, *how) for arrays in itertools.product(ARRAYS[:6], ARRAYS) for how in JOINS]),
        (known.key_of_join, [(arrays, 0, 0) for arrays in [(), (X,), [X], (X, X), (X,) * 64, (X,) * 65, X, None]]),
    ],
    ids=["slice", "split", "join", "how many arrays"],
)
def test_calls_have_one_key_where_they_have_one_in_python(function, calls):
    keys, in_python = [function(*call) for call in calls], [alone(function, *call) for call in calls]
    assert [key is None for key in keys] == [key is None for key in in_python]
    alike, alike_in_python = ({}, {})
    for i, (key, key_in_python) in enumerate(zip(keys, in_python, strict=True)):
        if key is not None:
            alike.setdefault(key, []).append(i)
            alike_in_python.setdefault(key_in_python, []).append(i)
    assert len(alike) > 1 or len(calls) < 10
    assert list(alike.values()) == list(alike_in_python.values())


@needs_calls
def test_a_call_with_ints_of_more_than_64_bits_is_not_known():
    assert known.key_of(X, [0], [LARGEST + 1], None, None) is None
    assert known.key_of_split(X, [-LARGEST - 2], 0, None) is None


ITEMS = 48


@st.composite
def layouts(draw, contiguous=False):
    """Shape, byte strides and offset of an array of 2-byte items inside of 48 ones."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    if contiguous:
        return shape, None, draw(st.integers(0, ITEMS - 27)) * 2
    strides = tuple(2 * draw(st.integers(-4, 4)) for _ in shape)
    low = sum(min(0, step * (count - 1)) for step, count in zip(strides, shape, strict=True) if count)
    return shape, strides, draw(st.integers(-low // 2, 24)) * 2


def made(memory, layout, dtype=np.int16):
    shape, strides, offset = layout
    return np.ndarray(shape, dtype, memory, offset, strides)


def are_apart(arrays, outs):
    pairs = [*itertools.product(arrays, outs), *itertools.combinations(outs, 2)]
    return not any(np.may_share_memory(*pair) for pair in pairs)


@needs_calls
@given(
    st.lists(layouts(), min_size=1, max_size=3), st.lists(layouts(contiguous=True), min_size=1, max_size=3), st.data()
)
@settings(max_examples=300, deadline=None)
def test_outputs_that_need_no_closer_look(inputs, outputs, data):
    memories = [bytearray(2 * ITEMS) for _ in range(3)]
    which = st.sampled_from(memories)
    arrays = [made(data.draw(which), layout) for layout in inputs]
    outs = [made(data.draw(which), layout) for layout in outputs]
    shapes = [out.shape for out in outs]
    assert COMPILED.takes(tuple(arrays), outs, shapes) == are_apart(arrays, outs)
    assert COMPILED.takes_one(arrays[0], outs[0], shapes[0]) == are_apart(arrays[:1], outs[:1])
    if alone(known.is_usual, arrays[0], outs[0], shapes[0]):
        assert COMPILED.takes_one(arrays[0], outs[0], shapes[0])
    if alone(known.are_usual, arrays[0], outs, shapes):
        assert COMPILED.takes((arrays[0],), outs, shapes)


def read_only(array):
    array.flags.writeable = False
    return array


@needs_calls
@pytest.mark.parametrize(
    "out",
    [
        np.zeros((2, 3), "f4"), np.zeros((3, 2)), np.zeros((2, 3, 1)), np.zeros(6), np.zeros((3, 2)).T, np.zeros((2, 6))[:, ::2],
        np.zeros((2, 3), ">f8"), read_only(np.zeros((2, 3))), np.zeros((2, 3)).view(np.matrix), [[0.0] * 3] * 2, None,
    ],
    ids=repr,
)  # fmt: skip
def test_other_outputs_need_a_closer_look(out):
    assert not COMPILED.takes_one(X, out, (2, 3))
    assert not COMPILED.takes((X,), (out,), [(2, 3)])
    assert not COMPILED.takes((X,), [np.zeros((2, 3)), out], [(2, 3)] * 2)
    assert not COMPILED.takes((X,), [], [(2, 3)])
    assert COMPILED.takes_one(X, np.zeros((2, 3)), (2, 3))


@needs_calls
def test_memory_of_two_other_owners_needs_a_closer_look():
    """Both may be mappings of one file, at two addresses."""
    one, other = (np.frombuffer(mmap.mmap(-1, 48)).reshape(2, 3) for _ in range(2))
    own = np.zeros((2, 3))
    pairs = [(own, one), (one, own), (one, other), (one[::-1], other)]
    assert [COMPILED.takes_one(*pair, (2, 3)) for pair in pairs] == [True, True, False, False]
    assert [COMPILED.takes(pair[:1], pair[1:], [(2, 3)]) for pair in pairs] == [True, True, False, False]
    assert not COMPILED.takes((own,), (one, other), [(2, 3)] * 2)


@needs_calls
@given(st.lists(st.integers(0, 200), min_size=1, max_size=4), st.integers(0, 2**47))
def test_what_a_plan_depends_on_of_addresses(distances, base):
    addresses = [base + distance for distance in distances]
    assert COMPILED.shifted(distances, base) == kernel_executor._shifted(distances, base) == addresses
    assert COMPILED.alignments_of(addresses) == kernel_executor._alignments_of(addresses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_executor, "COMPILED", None)
        expected = kernel_executor.places_of(addresses)
    assert COMPILED.places_of(addresses, PIXEL_BYTES) == expected


@needs_calls
@pytest.mark.parametrize("array", [array for array in ARRAYS if isinstance(array, np.ndarray)], ids=repr)
def test_addresses(array):
    assert COMPILED.address_of(array) == array.__array_interface__["data"][0]
    assert COMPILED.addresses_of((array, array)) == [array.__array_interface__["data"][0]] * 2


@needs_calls
@compiled
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sources": []}, IndexError, "no address of part 0"),
        ({"targets": ()}, IndexError, "no address of part 0"),
        ({"sources": 1}, IndexError, "no address of part 0"),
        ({"targets": ["0"]}, TypeError, "int"),
        ({"kernel": 1 << 20}, RuntimeError, "no kernel number 1048576; error 1"),
        ({"parts": (0, 0)}, ValueError, "2 parts in a table of 1 entries"),
        ({"parts": (None,)}, TypeError, "int"),
    ],
)  # fmt: skip
def test_a_launch_that_fails(change, error, message):
    given = {"sources": [0], "targets": [0], "kernel": 0, "parts": (0,)} | change
    with pytest.raises(error, match=message):
        COMPILED.Launch(
            host_library._FUNCTION, given["kernel"], 0, 0, b"", 1, b"", given["parts"], (0, 0, 0, 0)
        ).run(given["sources"], given["targets"])  # fmt: skip


def test_python_alone_is_enough():
    """Run some of the tests in a process that does not find the module."""
    folder = Path(__file__).parent
    tests = [str(folder / name) for name in ("test_cases.py", "test_out.py", "test_sequences.py", "test_choice.py")]
    start = "import sys; sys.modules['gpuslice._calls'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", start, "-q", "-k", "not cupy and not dask and not jax and not torch", *tests]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("abiflags", "t", "this Python has no stable ABI"),
        ("implementation", SimpleNamespace(name="pypy"), "this Python has no stable ABI"),
        ("modules", {**sys.modules, "gpuslice._calls": None}, "the module for them was not built"),
    ],
)
def test_why_the_module_is_not_used(attribute, value, reason, monkeypatch):
    monkeypatch.setattr(sys, attribute, value, raising=False)
    assert calls._load() == (None, reason)


@needs_calls
def test_a_module_whose_end_is_missing_is_not_loaded(tmp_path, monkeypatch):
    content = calls._PATH.read_bytes()
    monkeypatch.setattr(calls, "_PATH", tmp_path / calls._PATH.name)
    calls._PATH.write_bytes(content[: len(content) // 2])
    assert calls._load() == (None, "the module for them cannot be loaded: its end is missing")


@needs_calls
def test_a_module_of_other_sources_is_not_used(monkeypatch):
    monkeypatch.setattr(kernel_sources, "digest", lambda: "0" * 16)
    message = r"_calls.abi3.so was compiled from other sources \(\w{16}\) than those of this checkout \(0{16}\).*nox -s kernels"
    with pytest.warns(RuntimeWarning, match=message):
        module, reason = calls._load()
    assert module is None
    assert "compiled from other sources" in reason
