"""Sequence and the operators on it: references, copies, dtypes by name, positions, and what is refused."""

import array
import collections.abc
import itertools
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same
from libraries import make, to_numpy

import gpuslice as gs
from gpuslice.versions import newest

# Lists so deep that Python cannot print them, and one that holds itself.
NESTED, ENDLESS = [0], []
for _ in range(20_000):
    NESTED = [NESTED]
ENDLESS.append(ENDLESS)
HUGE = np.broadcast_to(np.uint8(3), (2**62,))
A, B, C = np.arange(3, dtype=np.float32), np.ones((2, 2), np.float32), np.array(7, np.float32)


def test_sequence_is_an_immutable_sequence_of_references():
    seq = gs.Sequence([A, B])
    assert isinstance(seq, collections.abc.Sequence)
    assert (len(seq), seq.dtype, seq[0] is A, seq[-1] is B) == (2, "float32", True, True)
    assert isinstance(seq[1:], gs.Sequence)
    assert seq[1:][0] is B
    assert seq[2:].dtype == "float32"
    with pytest.raises(TypeError):
        seq[0] = B
    with pytest.raises(AttributeError):
        seq.dtype = "int8"


@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        (2, IndexError, r"^Sequence: position must be in \[-2, 1\] for 2 items; got 2$"),
        (-3, IndexError, r"^Sequence: position must be in \[-2, 1\] for 2 items; got -3$"),
        ("a", TypeError, r"^Sequence: position must be an int or a slice; got str 'a'$"),
    ],
)
def test_a_wrong_position_is_said(position, error, message):
    with pytest.raises(error, match=message):
        gs.Sequence([A, B])[position]


def test_a_sequence_of_a_sequence_keeps_the_dtype():
    assert gs.Sequence(gs.sequence_empty("bool")).dtype == "bool"
    with pytest.raises(IndexError, match="there are no items"):
        gs.sequence_empty("bool")[0]


def test_items_are_found_by_identity():
    equal = A.copy()
    seq = gs.Sequence([A, B, A, equal])
    assert (seq.index(A), seq.index(A, 1), seq.index(B, -4, 2), seq.index(equal)) == (0, 2, 1, 3)
    assert (seq.count(A), seq.count(equal), seq.count(C), seq.count(None)) == (2, 1, 0, 0)
    assert (A in seq, equal in seq, C in seq, 3 in seq) == (True, True, False, False)
    assert [item is other for item, other in zip(reversed(seq), (equal, A, B, A), strict=True)] == [True] * 4
    for value, bounds in [(C, ()), (A, (3,)), (B, (0, 1)), (equal, (0, -1)), (None, ())]:
        with pytest.raises(
            ValueError,
            match=r"^Sequence: value must be an item( in positions -?\d to -?\d)?, the same object; got (ndarray|NoneType None)$",
        ):
            seq.index(value, *bounds)
    assert seq != gs.Sequence([A, B, A, equal])
    assert seq == seq


SHOWN = [
    ([], "0 items, dtype='float32'"),
    ([A], "1 item, dtype='float32', shape=(3,)"),
    ([A, A], "2 items, dtype='float32', shape=(3,)"),
    ([C, C], "2 items, dtype='float32', shape=()"),
    ([A, B], "2 items, dtype='float32', shapes=[(3,), (2, 2)]"),
    ([A, B, C, A], "4 items, dtype='float32', shapes=[(3,), (2, 2), (), (3,)]"),
    ([A, B, C, A, B], "5 items, dtype='float32', shapes=[(3,), (2, 2), (), (3,), ...]"),
]


@pytest.mark.parametrize(("items", "shown"), SHOWN, ids=[shown for _, shown in SHOWN])
def test_repr_shows_shapes(items, shown):
    seq = gs.Sequence(items)
    assert repr(seq) == f"Sequence({shown})"
    table = ElementTree.fromstring(f"<div>{seq._repr_html_()}</div>")
    rows = [[cell.text for cell in row] for row in table.iter("tr")]
    assert rows[0] == ["item", "shape"]
    assert rows[1:] == [[str(i), str(item.shape).replace(",)", ")")] for i, item in enumerate(items)]


def test_html_of_many_items():
    table = ElementTree.fromstring(f"<div>{gs.Sequence([A] * 25)._repr_html_()}</div>")
    assert [text.text for text in table.iter("p")] == ["Sequence: 25 items of float32", "15 more"]
    assert len(list(table.iter("tr"))) == 11


@pytest.mark.parametrize(
    ("items", "dtype", "name"),
    [
        ([], None, "float32"),
        ([], "bfloat16", "bfloat16"),
        ([np.zeros(1, ml_dtypes.bfloat16)], None, "bfloat16"),
        ([np.array(["a"]), np.array(["b", "cd"]), np.array(["e"], dtype=object)], None, "string"),
        ([np.zeros(1, "<i4"), np.zeros(1, ">i4")], "int32", "int32"),
    ],
)
def test_dtype_is_an_onnx_name(items, dtype, name):
    assert gs.Sequence(items, dtype).dtype == name


def test_mixed_dtypes_are_refused():
    with pytest.raises(TypeError, match=r"^Sequence: items must hold one dtype, float32; got int64 in items\[1\]$"):
        gs.Sequence([A, np.arange(2)])
    with pytest.raises(TypeError, match=r"^Sequence: items must hold one dtype, int8; got float32 in items\[0\]$"):
        gs.Sequence([A], "int8")
    with pytest.raises(
        TypeError, match=f"^{newest('SequenceInsert')}: tensor must have the sequence's dtype, float32; got int64"
    ):
        gs.sequence_insert([A], np.arange(2))
    with pytest.raises(
        TypeError,
        match=f"^{newest('SequenceConstruct')}: inputs must hold one dtype, float32; got int64 in inputs\\[1\\]$",
    ):
        gs.sequence_construct(A, np.arange(2))
    with pytest.raises(TypeError, match=f"^{newest('SequenceAt')}: seq must hold one dtype"):
        gs.sequence_at([A, np.arange(2)], 0)


@pytest.mark.parametrize("items", [A, "text", 3, [A, [1, 2]]], ids=["array", "text", "int", "list"])
def test_a_sequence_holds_only_arrays(items):
    with pytest.raises(TypeError):
        gs.Sequence(items)


class Endless(list):
    def __iter__(self):
        return itertools.repeat(A)


def test_a_list_is_read_as_long_as_it_was():
    assert int(gs.sequence_length(Endless([A]))) == 1


class Lying(gs.Sequence):
    """A sequence that holds another dtype than it says."""

    __slots__ = ()

    def __getitem__(self, index):
        return np.zeros(2, np.int8)

    def __iter__(self):
        return iter([np.zeros(2, np.int8)] * len(self))


def test_a_subclass_of_sequence_is_read_like_a_list():
    assert gs.sequence_insert(Lying([A]), np.ones(1, np.int8)).dtype == "int8"
    assert_same(gs.concat_from_sequence(Lying([A]), axis=0), np.zeros(2, np.int8))


@pytest.mark.parametrize(
    ("seq", "message"),
    [
        (NESTED, r"seq\[0\] must be an array; got list$"),
        (ENDLESS, r"seq\[0\] must be an array; got list$"),
        ([A, np.float32], r"seq\[1\] must be an array; got the class float32$"),
        ((A, A, np.ma.array(A)), r"seq\[2\] must not be a masked array"),
        (np.ndarray, "seq must be a gpuslice.Sequence, list or tuple of arrays; got the class ndarray$"),
        ([np.array(["a"]), A], r"seq must hold one dtype, string; got float32 in seq\[1\]$"),
        ([A, A, A, np.arange(2), A], r"seq must hold one dtype, float32; got int64 in seq\[3\]$"),
    ],
)
def test_messages_name_what_is_wrong_in_a_sequence(seq, message):
    for name, call in [
        ("SequenceAt", lambda: gs.sequence_at(seq, 0)),
        ("SequenceInsert", lambda: gs.sequence_insert(seq, A)),
        ("SequenceErase", lambda: gs.sequence_erase(seq)),
        ("SequenceLength", lambda: gs.sequence_length(seq)),
        ("ConcatFromSequence", lambda: gs.concat_from_sequence(seq, axis=0)),
    ]:
        with pytest.raises(TypeError, match=f"^{newest(name)}: {message}"):
            call()


@pytest.mark.parametrize(
    "items", [{0: A}, {"a"}, NESTED, 3.5, range(2), A[0], iter([None])], ids=lambda v: type(v).__name__
)
def test_items_of_a_sequence_are_arrays_in_an_order(items):
    with pytest.raises(TypeError, match=r"^Sequence: items(\[0\])? must be (an array|a list or tuple of arrays); got"):
        gs.Sequence(items)


@pytest.mark.parametrize("seq", [A, {0: A}, None])
def test_operators_take_sequences_lists_and_tuples_only(seq):
    with pytest.raises(TypeError, match=f"^{newest('SequenceLength')}: seq must be a gpuslice.Sequence, list or tuple"):
        gs.sequence_length(seq)


def test_insert_and_erase_move_references(xp):
    a, b, c = (make(xp, array) for array in (A, B, C))
    for seq in ([a, b], (a, b), gs.Sequence([a, b])):
        with gs.trace() as t:
            front, end, last = gs.sequence_insert(seq, c, 0), gs.sequence_insert(seq, c), gs.sequence_insert(seq, c, 2)
            middle = gs.sequence_insert(seq, c, -1)
            erased = gs.sequence_erase(front, 1)
        assert [x is y for x, y in zip(front, [c, a, b], strict=True)] == [True] * 3
        assert [x is y for x, y in zip(end, [a, b, c], strict=True)] == [True] * 3
        assert [x is y for x, y in zip(last, [a, b, c], strict=True)] == [True] * 3
        assert [x is y for x, y in zip(middle, [a, c, b], strict=True)] == [True] * 3
        assert [x is y for x, y in zip(erased, [c, b], strict=True)] == [True] * 2
        assert (t.launches, t.allocations, len(seq)) == ([], [], 2)
    assert len(gs.sequence_erase([a])) == 0


def test_insert_into_a_plain_empty_list_takes_the_dtype():
    assert gs.sequence_insert([], np.arange(2)).dtype == "int64"
    with pytest.raises(TypeError, match="float32; got int64"):
        gs.sequence_insert(gs.sequence_empty(), np.arange(2))


def test_sequence_at_copies(xp):
    a, b = make(xp, A.copy()), make(xp, B.copy())
    result = gs.sequence_at([a, b], -1)
    assert_same(result, B, like=b)
    result[...] = xp.zeros_like(result)
    assert to_numpy(b).all()
    view = gs.sequence_at([a, b], 1, copy=None)
    view[...] = xp.zeros_like(view)
    assert not to_numpy(b).any()


@pytest.mark.parametrize(
    "position",
    [
        1,
        np.int32(1),
        np.array(1),
        np.array([1]),
        np.array([[1]]),
        np.array([[1]]).view(np.matrix),
    ],
    ids=lambda p: repr(p),
)
def test_a_position_is_one_int(position):
    assert_same(gs.sequence_at([A, B, C], position), B)


@pytest.mark.parametrize(
    ("position", "error"),
    [
        (3, IndexError),
        (-4, IndexError),
        (2**70, IndexError),
        (np.array([0, 1]), IndexError),
        (np.array([], np.int64), IndexError),
        ([], TypeError),
        ([1], TypeError),
        ((1,), TypeError),
        (range(1), TypeError),
        (True, TypeError),
        (1.0, TypeError),
        (np.array(1.0), TypeError),
        (None, TypeError),
        (NESTED, TypeError),
        (ENDLESS, TypeError),
        (np.ma.array(1, mask=True), TypeError),
        (np.ma.array([1]), TypeError),
        (np.int64, TypeError),
        ([np.array(1)], TypeError),
    ],
    ids=lambda case: type(case).__name__,
)
def test_other_positions_are_refused(position, error):
    with pytest.raises(error, match=f"^{newest('SequenceAt')}: position must"):
        gs.sequence_at([A, B, C], position)


def test_length_is_a_0_d_int64(xp):
    a, b = make(xp, A), make(xp, B)
    assert_same(gs.sequence_length([a, b]), np.array(2), like=xp.asarray(2))
    assert_same(gs.sequence_length([]), np.array(0))


@pytest.mark.parametrize("dtype", ["int8", np.int8, np.dtype("int8")], ids=repr)
def test_sequence_empty_takes_names_and_dtypes(dtype, xp):
    assert gs.sequence_empty(dtype).dtype == "int8"
    assert gs.sequence_empty(xp.int8).dtype == "int8"
    assert gs.sequence_empty().dtype == "float32"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # older NumPy warns of np.generic before it is refused
@pytest.mark.parametrize(
    "dtype",
    ["float8", "int4", 7, "M8[s]", object, list, np.generic, NESTED, ENDLESS, "a" * 10**6, {}, A],
    ids=lambda dtype: type(dtype).__name__,
)
def test_sequence_empty_refuses_other_dtypes(dtype):
    with pytest.raises(TypeError, match=f"^{newest('SequenceEmpty')}: dtype must be one of .*; got"):
        gs.sequence_empty(dtype)
    with pytest.raises(TypeError, match="^Sequence: dtype must be one of .*; got"):
        gs.Sequence((), dtype)


def test_construct_needs_a_tensor():
    with pytest.raises(ValueError, match=f"^{newest('SequenceConstruct')}: inputs must hold at least one tensor"):
        gs.sequence_construct()


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("arguments", "shapes"),
    [
        ({}, [(1, 4)] * 3),
        ({"keepdims": 0}, [(4,)] * 3),
        ({"keepdims": False, "axis": -1}, [(3,)] * 4),
        ({"split": 2}, [(2, 4), (1, 4)]),
        ({"split": 9}, [(3, 4)]),
        ({"split": np.array(2), "keepdims": 0}, [(2, 4), (1, 4)]),
        ({"split": [3, 0, 1], "axis": 1, "keepdims": 0}, [(3, 3), (3, 0), (3, 1)]),
        ({"split": np.array([1, 2], np.int32)}, [(1, 4), (2, 4)]),
        ({"split": array.array("l", [1, 2])}, [(1, 4), (2, 4)]),
    ],
)
def test_split_to_sequence(arguments, shapes, xp):
    x = make(xp, X)
    seq = gs.split_to_sequence(x, **arguments)
    assert seq.dtype == "float32"
    assert [item.shape for item in seq] == shapes
    axis = arguments.get("axis", 0)
    drop = not arguments.get("keepdims", 1) and "split" not in arguments
    sizes = [1 if drop else item.shape[axis] for item in seq]
    outs = [make(xp, np.zeros(shape, np.float32)) for shape in shapes]
    for into in (list(outs), tuple(outs)):
        written = gs.split_to_sequence(x, **arguments, out=into)
        assert type(written) is gs.Sequence
        assert written.dtype == "float32"
        assert all(item is out for item, out in zip(written, outs, strict=True))
    for item, out, part in zip(seq, outs, np.split(X, np.cumsum(sizes)[:-1], axis=axis), strict=True):
        assert_same(item, (part.squeeze(axis) if drop else part).copy(), like=x)
        assert_same(out, to_numpy(item), like=x)


@pytest.mark.parametrize("count", [0, 1, 17, 3000])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_split_to_sequence_writes_any_number_of_arrays(count, keepdims):
    x = np.arange(2 * count, dtype=np.int16).reshape(2, count)
    target = np.zeros_like(x)
    outs = [target[:, i : i + 1] if keepdims else target[:, i] for i in range(count)]
    written = gs.split_to_sequence(x, axis=1, keepdims=keepdims, out=outs)
    assert (len(written), written.dtype) == (count, "int16")
    assert all(item is out for item, out in zip(written, outs, strict=True))
    assert_same(target, x)
    with pytest.raises(ValueError, match=f"^{newest('SplitToSequence')}: out must hold {count} arrays, one per output"):
        gs.split_to_sequence(x, axis=1, keepdims=keepdims, out=[*outs, np.zeros((2, 1), np.int16)])
    with pytest.raises(TypeError, match="out must be a list or tuple of arrays, one per output; got Sequence"):
        gs.split_to_sequence(x, axis=1, keepdims=keepdims, out=written)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"split": 0}, ValueError, "split must be at least 1 if it is a scalar; got 0"),
        ({"split": [2, 2]}, ValueError, "split must add up to the length of the axis, 3; got 4"),
        ({"split": [4, -1]}, ValueError, "split must not be negative"),
        (
            {"split": 1.5},
            TypeError,
            "split must be an int, a sequence of ints or a 0-d or 1-D integer array; got float 1.5",
        ),
        ({"split": np.ones((1, 1), int)}, ValueError, r"split must be 0-d or 1-D; got shape \(1, 1\)"),
        (
            {"split": "1"},
            TypeError,
            "split must be an int, a sequence of ints or a 0-d or 1-D integer array; got str '1'",
        ),
        ({"axis": 2}, ValueError, "axis must be in"),
        ({"keepdims": 2}, ValueError, "keepdims must be 0 or 1; got 2"),
        ({"keepdims": 0.0}, TypeError, "keepdims must be 0 or 1; got float 0.0"),
    ],
)
def test_split_to_sequence_errors(arguments, error, message):
    with pytest.raises(error, match=f"^{newest('SplitToSequence')}: {message}"):
        gs.split_to_sequence(X, **arguments)


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("new_axis", [0, 1, False, True])
def test_concat_from_sequence(axis, new_axis, xp):
    items = [make(xp, array) for array in (X, X[::-1, ::-1], X + 1)]
    if axis in (-3, 2) and not new_axis:
        with pytest.raises(ValueError, match=rf"^{newest('ConcatFromSequence')}: axis must be in \[-2, 1\] for rank 2"):
            gs.concat_from_sequence(items, axis=axis)
    else:
        joiner = np.stack if new_axis else np.concatenate
        expected = np.ascontiguousarray(joiner([X, X[::-1, ::-1], X + 1], axis=axis))
        assert_same(gs.concat_from_sequence(items, axis=axis, new_axis=new_axis), expected, like=items[0])
        out = make(xp, np.zeros_like(expected))
        assert gs.concat_from_sequence(items, axis=axis, new_axis=new_axis, out=out) is out
        assert_same(out, expected, like=items[0])
        wrong = make(xp, np.zeros((*expected.shape, 1), np.float32))
        with pytest.raises(ValueError, match=f"^{newest('ConcatFromSequence')}: out must have shape"):
            gs.concat_from_sequence(items, axis=axis, new_axis=new_axis, out=wrong)


@pytest.mark.parametrize(
    ("seq", "arguments", "error", "message"),
    [
        ([], {"axis": 0}, ValueError, "seq must hold at least one tensor"),
        (
            [A, B],
            {"axis": 0},
            ValueError,
            r"seq must hold tensors of one shape except along axis 0; got \(3,\) in seq\[0\] and .* in seq\[1\]$",
        ),
        (
            [X, X, X, X[:2]],
            {"axis": 1},
            ValueError,
            r"seq must hold tensors of one shape except along axis 1; got .* in seq\[0\] and .* in seq\[3\]$",
        ),
        (
            [X, X, X[:2], X[:1]],
            {"axis": 0, "new_axis": 1},
            ValueError,
            r"seq must hold tensors of one shape; got .* in seq\[0\] and .* in seq\[2\]$",
        ),
        ([C, C], {"axis": 0}, ValueError, "axis must name an axis, but rank 0 has no axes"),
        ([X], {"axis": 0, "new_axis": 2}, ValueError, "new_axis must be 0 or 1; got 2"),
        (
            [np.zeros((1,) * 64)] * 2,
            {"axis": 0, "new_axis": 1},
            ValueError,
            "seq must hold tensors of at most 63 axes with new_axis=1; got 64",
        ),
        # More items than an array can have, and more bytes than there are addresses for.
        ([HUGE] * 4, {"axis": 0}, ValueError, f"seq must hold at most {2**63 - 1} items along axis 0; got {2**64}"),
        ([HUGE[:, None][:, :0]] * 4, {"axis": 0}, ValueError, f"seq must hold at most {2**63 - 1} items"),
        (
            [HUGE] * 4,
            {"axis": 1, "new_axis": 1},
            MemoryError,
            f"1 output of {2**64} bytes in all cannot be allocated",
        ),
    ],
)
def test_concat_errors(seq, arguments, error, message):
    with pytest.raises(error, match=f"^{newest('ConcatFromSequence')}: {message}"):
        gs.concat_from_sequence(seq, **arguments)


STRING = np.dtypes.StringDType()


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([np.array(["a"]), np.array(["bcd"])], np.array(["a", "bcd"])),
        ([np.array(["a"], object), np.array(["bcd"])], np.array(["a", "bcd"], object)),
        ([np.array(["a"], object), np.array([b"\xff"])], np.array(["a", b"\xff"], object)),
        ([np.array([b"a"]), np.array(["bcd"])], np.array(["a", "bcd"])),
        ([np.array(["a"]), np.array([b"bc"]), np.array(["de"])], np.array(["a", "bc", "de"])),
        ([np.array([b"a"]), np.array(["bcd"], STRING)], np.array(["a", "bcd"], STRING)),
        ([np.array(["bcd"], STRING), np.array([b"a"])], np.array(["bcd", "a"], STRING)),
        ([np.array(["bcd"], STRING), np.array(["a"])], np.array(["bcd", "a"], STRING)),
        ([np.array([b"a"]), np.array(["b"], STRING), np.array(["c"], object)], np.array([b"a", "b", "c"], object)),
        ([np.array([b"a"]), np.array([b"\xff\xfe"])], np.array([b"a", b"\xff\xfe"])),
        # UTF-8, which is ONNX's encoding, and as wide as the bytes are.
        ([np.array(["a"]), np.array(["é".encode(), b"abc"])], np.array(["a", "é", "abc"])),
        ([np.array(["é".encode()]), np.array(["a"])], np.array(["é", "a"], "U2")),
        ([np.array(["a"], STRING), np.array([["é".encode(), b"b"]])[0, ::-1]], np.array(["a", "b", "é"], STRING)),
        ([np.array(["a"]), np.array([b""])[:0]], np.array(["a"])),
    ],
    ids=repr,
)
def test_concat_of_several_kinds_of_text(items, expected):
    assert_same(gs.concat_from_sequence(items, axis=0), expected)
    out = np.empty_like(expected)
    assert gs.concat_from_sequence(items, axis=0, out=out) is out
    assert_same(out, expected)


def test_a_known_concat_decodes_bytes_again(kernels_for_all):
    items = [np.full((3000, 3), "ab"), np.full((3000, 3), b"cd")]
    for _ in range(2):
        assert_same(gs.concat_from_sequence(items, axis=1), np.concatenate(items, axis=1))


@pytest.mark.parametrize("order", "<>")
def test_concat_of_two_byte_orders(order):
    items = [np.arange(2, dtype=">i4"), np.arange(2, dtype="<i4")]
    assert gs.concat_from_sequence(items, axis=0).tolist() == [0, 1, 0, 1]
    out = np.zeros(4, f"{order}i4")
    if order == "<":
        assert gs.concat_from_sequence(items, axis=0, out=out).tolist() == [0, 1, 0, 1]
    else:
        with pytest.raises(TypeError, match=f"^{newest('ConcatFromSequence')}: out must have dtype int32; got >i4"):
            gs.concat_from_sequence(items, axis=0, out=out)
        assert not out.any()


def test_text_with_two_markers_of_what_is_missing_is_refused():
    texts = [np.array(["a"], np.dtypes.StringDType(na_object=marker)) for marker in (None, np.nan)]
    with pytest.raises(
        TypeError,
        match=f"^{newest('ConcatFromSequence')}: arrays of a sequence must have a common dtype; got StringDType",
    ):
        gs.concat_from_sequence(texts, axis=0)


def test_concat_of_two_libraries_or_devices_is_refused():
    strict = pytest.importorskip("array_api_strict")
    here, there = strict.asarray(X), strict.asarray(X, device=strict.Device("device1"))
    with pytest.raises(TypeError, match=r"one library; got numpy in seq\[0\] and array_api_strict in seq\[2\]$"):
        gs.concat_from_sequence([X, X, here], axis=0)
    with pytest.raises(ValueError, match=r"seq must hold arrays of one device; got .*CPU.* in .*0\] and .*device1"):
        gs.concat_from_sequence([here, there], axis=0)


@pytest.mark.parametrize("dtype", ["U1", STRING], ids=["fixed width", "StringDType"])
def test_an_error_of_decoding_keeps_its_type_and_names_operator_and_array(dtype):
    message = rf"decode byte 0xff.*, in seq\[1\] \({newest('ConcatFromSequence')}\)"
    with pytest.raises(UnicodeDecodeError, match=message) as caught:
        gs.concat_from_sequence([np.array(["a"], dtype), np.array([b"\xff"])], axis=0)
    assert caught.value.object == b"\xff"


@pytest.mark.parametrize("count", [1, 10_000])
def test_out_is_as_it_was_if_a_later_item_cannot_be_decoded(count):
    out = np.full(2 * count, "c")
    before = out.tolist()
    items = [np.full(count, "a"), np.full(count, b"\xff")]
    with pytest.raises(UnicodeDecodeError, match=newest("ConcatFromSequence")):
        gs.concat_from_sequence(items, axis=0, out=out)
    assert out.tolist() == before
