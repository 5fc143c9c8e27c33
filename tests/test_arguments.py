"""Bounds, sizes and axes: which kinds of values are accepted, and what the errors say."""

import array
import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest
from helpers import assert_same
from libraries import make

import gpuslice as gs
from gpuslice.versions import newest

X = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
INDEX_KINDS = [
    [0, 2],
    (0, 2),
    range(0, 4, 2),
    array.array("l", [0, 2]),
    memoryview(array.array("l", [0, 2])),
    np.array([0, 2], np.uint8),
    np.array([0, 2], ">i8"),
    [np.int64(0), 2],
    [np.int64(0), np.array(2)],
]


@pytest.mark.parametrize("starts", INDEX_KINDS, ids=lambda kind: type(kind).__name__)
def test_bounds_may_be_any_sequence_of_ints(starts, xp):
    data = make(xp, X)
    assert_same(gs.slice(data, starts, [2**80, 2**80]), X[0:, 2:].copy(), like=data)


def test_bounds_may_be_arrays_of_another_library(xp):
    bounds = [xp.asarray(values, dtype=xp.int32) for values in ([0, 2], [9, 9], [0, 1], [1, 1])]
    assert_same(gs.slice(X, *bounds), X[:, 2:].copy())
    sizes = xp.asarray([1, 2], dtype=xp.int64)
    assert [part.shape for part in gs.split(X, sizes, axis=1)] == [(2, 1, 4), (2, 2, 4)]


class Endless(list):
    """A list whose iterator does not end."""

    def __iter__(self):
        return itertools.count()


class Growing:
    """An int that makes a list longer each time it is read."""

    def __init__(self, values):
        self.values = values
        values.append(self)

    def __index__(self):
        self.values.append(self)
        return 0


def test_a_sequence_is_read_as_long_as_it_was():
    assert_same(gs.slice(X, Endless([7, 8]), [1, 1]), X[:1, 1:1].copy())
    starts = []
    Growing(starts)
    assert_same(gs.slice(X, starts, [1]), X[:1].copy())
    assert len(starts) == 2


class Resizing:
    """An int that changes the shape of an array when it is read."""

    def __init__(self, array, shape, value):
        self.array, self.shape, self.value = array, shape, value

    def __index__(self):
        self.array.resize(self.shape, refcheck=False)
        return self.value


# What is called with an array, and an int that resizes it to (4, 6): each int argument in turn.
RESIZED = {
    "slice, starts": (lambda x, i: gs.slice(x, [i(0)], [99]), (4, 6)),
    "slice, ends": (lambda x, i: gs.slice(x, [0], [i(99)]), (4, 6)),
    "slice, axes": (lambda x, i: gs.slice(x, [0], [99], [i(1)]), (4, 6)),
    "slice, steps": (lambda x, i: gs.slice(x, [0], [99], None, [i(2)]), (2, 6)),
    "dynamic_slice": (lambda x, i: gs.dynamic_slice(x, [i(1)], [99]), (3, 6)),
    "split, sizes": (lambda x, i: gs.split(x, [i(4)])[0], (4, 6)),
    "split, axis": (lambda x, i: gs.split(x, [6], axis=i(1))[0], (4, 6)),
    "split, num_outputs": (lambda x, i: gs.split(x, num_outputs=i(1))[0], (4, 6)),
    "split_to_sequence, sizes": (lambda x, i: gs.split_to_sequence(x, [i(4)])[0], (4, 6)),
    "split_to_sequence, size": (lambda x, i: gs.split_to_sequence(x, i(4))[0], (4, 6)),
    "split_to_sequence, axis": (lambda x, i: gs.split_to_sequence(x, [6], axis=i(1))[0], (4, 6)),
    "split_to_sequence, keepdims": (lambda x, i: gs.split_to_sequence(x, keepdims=i(0))[0], (6,)),
    "sequence_at": (lambda x, i: gs.sequence_at([x], i(0)), (4, 6)),
    "concat_from_sequence, axis": (lambda x, i: gs.concat_from_sequence([x], axis=i(0)), (4, 6)),
    "concat_from_sequence, new_axis": (lambda x, i: gs.concat_from_sequence([x], axis=0, new_axis=i(1)), (1, 4, 6)),
}


@pytest.mark.parametrize("kind", RESIZED)
@pytest.mark.parametrize("before", [(2, 3), (300, 200)], ids=["larger", "smaller"])
def test_an_argument_may_resize_the_array_when_it_is_read(kind, before):
    call, shape = RESIZED[kind]
    x = np.ones(before)
    result = call(x, lambda value: Resizing(x, (4, 6), value))
    assert x.shape == (4, 6)
    assert result.shape == shape


def nested(depth, value=0):
    """Return a list in a list, so deep."""
    for _ in range(depth):
        value = [value]
    return value


def endless():
    """Return a list that holds itself."""
    values = []
    values.append(values)
    return values


HUGE = 10**5000
HUGE_MESSAGES = [
    (lambda: gs.slice(X, [0], [1], [HUGE]), ValueError, r"axes must be in \[-3, 2\] for rank 3; got an int of 16610 bits in axes=\[an int of"),
    (lambda: gs.slice(X, [HUGE] * 4, [1] * 4), ValueError, r"starts must have at most 3 values for rank 3 if axes are omitted; got starts=\[an int of"),
    (lambda: gs.slice(X, [0], [HUGE, 1]), ValueError, r"ends must have as many values as starts, 1; got ends=\[an int of 16610 bits, 1\]"),
    (lambda: gs.split(X, 2), TypeError, "split must be a sequence of sizes; got int 2: num_outputs=2 makes equal parts$"),
    (lambda: gs.split(X, [HUGE]), ValueError, "split must add up to the length of the axis, 2; got an int of 16610 bits"),
    (lambda: gs.split(X, num_outputs=HUGE), ValueError, "num_outputs must be at least 1 and at most 2147483647; got an int of"),
    (lambda: gs.split(X, [2], axis=-HUGE), ValueError, "axis must be in .*; got an int of"),
    (lambda: gs.split_to_sequence(X, -HUGE), ValueError, "split must be at least 1 if it is a scalar; got an int of"),
    (lambda: gs.split_to_sequence(X, keepdims=HUGE), ValueError, "keepdims must be 0 or 1; got an int of"),
    (lambda: gs.sequence_at([X], HUGE), IndexError, "position must be in .*; got an int of"),
    (lambda: gs.sequence_erase([], HUGE), IndexError, "position must name a tensor, .*; got an int of"),
    (lambda: gs.concat_from_sequence([X], axis=HUGE), ValueError, "axis must be in .*; got an int of"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), HUGE_MESSAGES, ids=[bad[2][:30] for bad in HUGE_MESSAGES])
def test_ints_that_python_refuses_to_print(call, error, message):
    with pytest.raises(error, match=f": {message}"):
        call()


def test_huge_ints_are_only_clamped():
    assert_same(gs.slice(X, [-HUGE], [HUGE], [1], [HUGE]), X[:, :1].copy())
    assert_same(gs.slice(X, [HUGE], [-HUGE], [1], [-1]), X[:, ::-1].copy())
    assert_same(gs.split_to_sequence(X, HUGE)[0], X)


def test_messages_are_short(monkeypatch):
    long = np.dtype([(f"field {i}", "i4") for i in range(1000)])
    with pytest.raises(TypeError, match="^contiguous: out must have dtype .*\\.\\.\\.$") as caught:
        gs.contiguous(np.zeros(1, long), out=np.zeros(1))
    assert len(str(caught.value)) == 500
    gs.clear_caches()  # a known call does without it
    monkeypatch.setattr("gpuslice.operators.slicing.split_18", lambda *args, **kwargs: exec("raise MemoryError"))
    with pytest.raises(MemoryError, match=f"^{newest('Split')}: out of memory$"):
        gs.split(X, [2])


def test_an_error_with_words_of_its_own_keeps_them():
    class Own(ValueError):
        def __str__(self):
            return "its own words"

    class Index:
        def __index__(self):
            raise Own("other words")

    with pytest.raises(Own) as caught:
        gs.slice(X, [Index()], [1])
    assert str(caught.value) == "its own words"
    assert caught.value.__notes__ == [newest("Slice")]


BAD_BOUNDS = [
    (3, TypeError, "starts must be a sequence of ints or a 1-D integer array; got int 3"),
    ("01", TypeError, "starts must be a sequence of ints"),
    (b"\x00", TypeError, "starts must be a sequence of ints"),
    ({0}, TypeError, "starts must be a sequence of ints"),
    (None, TypeError, "starts must be a sequence of ints"),
    (range(10**15), ValueError, "starts must have at most 1000 values; got 1000000000000000"),
    (np.broadcast_to(0, 10**15), ValueError, "starts must have at most 1000 values; got 1000000000000000"),
    ([True], TypeError, "starts must hold ints; got bool True"),
    ([np.bool_(True)], TypeError, "starts must hold ints"),
    ([1.0], TypeError, "starts must hold ints; got float 1.0"),
    (["1"], TypeError, "starts must hold ints"),
    (nested(20_000), TypeError, "starts must hold ints; got list$"),
    (endless(), TypeError, "starts must hold ints; got list$"),
    ([None, nested(20_000)], TypeError, "starts must hold ints; got NoneType None$"),
    ({0: nested(20_000)}, TypeError, "starts must be a sequence of ints or a 1-D integer array; got dict$"),
    (itertools.count(), TypeError, "starts must be a sequence of ints or a 1-D integer array; got count$"),
    (np.int64, TypeError, "starts must be a sequence of ints or a 1-D integer array; got the class int64$"),
    ([np.int64], TypeError, "starts must hold ints; got the class int64$"),
    ([b"a" * 41], TypeError, "starts must hold ints; got bytes$"),
    (np.ma.array([0], mask=[True]), TypeError, "starts must not be a masked array"),
    ([np.ma.array(0, mask=True)], TypeError, "starts must hold ints; got MaskedArray"),
    ([np.ma.masked], TypeError, "starts must hold ints; got MaskedConstant"),
    ([np.array([0])], TypeError, "starts must hold ints; got ndarray"),
    (np.array([0], object), TypeError, "starts must have an integer dtype; got object"),
    (np.array([True]), TypeError, "starts must have an integer dtype; got bool"),
    (np.array([1.0]), TypeError, "starts must have an integer dtype; got float64"),
    (np.array(1), ValueError, r"starts must be 1-D; got shape \(\)"),
    (np.array([[1]]), ValueError, r"starts must be 1-D; got shape \(1, 1\)"),
    (np.array([[1]]).view(np.matrix), ValueError, r"starts must be 1-D; got shape \(1, 1\)"),
]


@pytest.mark.parametrize(("starts", "error", "message"), BAD_BOUNDS, ids=[bad[2] for bad in BAD_BOUNDS])
def test_bad_bounds(starts, error, message):
    with pytest.raises(error, match=f"^{newest('Slice')}: {message}"):
        gs.slice(X, starts, [1])


BAD_SPLITS = [
    ({}, ValueError, "exactly one of split and num_outputs must be given; got neither"),
    ({"split": [2], "num_outputs": 1}, ValueError, "exactly one .*; got both"),
    ({"split": []}, ValueError, "split must add up"),
    ({"num_outputs": 0}, ValueError, "num_outputs must be at least 1"),
    ({"num_outputs": True}, TypeError, "num_outputs must be an int"),
    ({"num_outputs": 1, "axis": 3}, ValueError, r"axis must be in \[-3, 2\] for rank 3; got 3"),
    ({"num_outputs": 1, "axis": 1.0}, TypeError, "axis must be an int; got float 1.0"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_SPLITS, ids=[str(bad[0]) for bad in BAD_SPLITS])
def test_bad_splits(arguments, error, message, xp):
    with pytest.raises(error, match=f"^{newest('Split')}: {message}"):
        gs.split(make(xp, X), **arguments)


def test_split_of_nothing_needs_a_part():
    with pytest.raises(ValueError, match="split must have at least one value"):
        gs.split(np.zeros(0), [])


def test_calls_that_are_known_are_not_confused_with_others():
    """Arguments that have the same ints in other places, or equal values of other types, after a right call."""
    assert_same(gs.slice(X, [0], [2], [1], [1]), X[:, :2].copy())
    assert_same(gs.slice(X, [0], [2], [1]), X[:, :2].copy())
    assert_same(gs.slice(X, [0, 1], [2, 1]), X[:2, 1:1].copy())
    for wrong in (
        [[0], [2, 1], []],
        [[0], [], [2, 1]],
        [[0, 2], [1], []],
        [[], [0], [2, 1]],
        [[0], [2], [], [1]],
        [[0, 2], [1, 1], [], []],
    ):
        with pytest.raises(ValueError, match=f"^{newest('Slice')}: (ends|axes|steps|starts) must have"):
            gs.slice(X, *wrong)
    for wrong in ([[False], [2], [1]], [[0], [2.0], [1]], [[0], [2], [True]], [[np.bool_(False)], [2], [1]]):
        with pytest.raises(TypeError, match=f"^{newest('Slice')}: (ends|axes|starts) must hold ints"):
            gs.slice(X, *wrong)
    assert len(gs.split(X, [1, 1])) == len(gs.split(X, num_outputs=2)) == len(gs.split(X, (1, 1), axis=0)) == 2
    for wrong in (
        {"split": [True, 1]},
        {"split": [1, 1], "axis": False},
        {"num_outputs": 2.0},
        {"num_outputs": 2, "axis": 0.0},
    ):
        with pytest.raises(TypeError, match=f"^{newest('Split')}: (split|axis|num_outputs) must"):
            gs.split(X, **wrong)
    for split in (1, [1, 1], None):
        assert len(gs.split_to_sequence(X, split, axis=0)) == 2
    for wrong in ({"split": True}, {"split": 1.0}, {"split": [1, True]}, {"axis": False}, {"keepdims": 1.0}):
        with pytest.raises(TypeError, match=f"^{newest('SplitToSequence')}: (split|axis|keepdims) must"):
            gs.split_to_sequence(X, **wrong)
    with pytest.raises(ValueError, match=f"^{newest('SplitToSequence')}: keepdims must be 0 or 1"):
        gs.split_to_sequence(X, 1, keepdims=2)
    assert [part.shape for part in gs.split_to_sequence(X, keepdims=False)] == [(3, 4)] * 2
    for seq in ([X, X], gs.Sequence([X, X])):
        assert gs.concat_from_sequence(seq, axis=0).shape == (4, 3, 4)
        assert gs.concat_from_sequence(seq, axis=0, new_axis=1).shape == (2, 2, 3, 4)
        assert gs.concat_from_sequence(seq, axis=0, new_axis=True).shape == (2, 2, 3, 4)
        assert gs.concat_from_sequence(seq, axis=0, new_axis=np.True_).shape == (2, 2, 3, 4)
        for wrong in ({"axis": False}, {"axis": 0.0}, {"axis": 0, "new_axis": 1.0}):
            with pytest.raises(TypeError, match=f"^{newest('ConcatFromSequence')}: (axis|new_axis) must"):
                gs.concat_from_sequence(seq, **wrong)
    with pytest.raises(ValueError, match=f"^{newest('ConcatFromSequence')}: seq must hold tensors of one shape"):
        gs.concat_from_sequence([X, X[:1]], axis=1)
    for wrong in (0, 1, [], "", np.False_):
        with pytest.raises(ValueError, match="one_block must be True, False or None"):
            gs.split(X, num_outputs=2, one_block=wrong)
        with pytest.raises(ValueError, match="copy must be True, False or None"):
            gs.slice(X, [0], [2], [1], copy=wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gs.slice(x, [True], [4]),
        lambda x: gs.slice(x, [0], ["1"]),
        lambda x: gs.slice(x, [0], [1], [7]),
        lambda x: gs.split(x, [1], out=[x]),
        lambda x: gs.split(x, 1.5),
        lambda x: gs.split_to_sequence(x, 0),
        lambda x: gs.concat_from_sequence([x, x], axis=9),
        lambda x: gs.sequence_at([x], True),
        lambda x: gs.contiguous([x, None]),
    ],
)  # fmt: skip
def test_an_error_keeps_no_array_alive(call):
    x = np.zeros((8, 8))
    held = weakref.ref(x)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(TypeError, ValueError, IndexError):
            call(x)
        del x
        assert held() is None
    finally:
        gc.enable()
