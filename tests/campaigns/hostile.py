"""Values of every kind that may be given as an argument by mistake or in malice, and what the sound ones mean."""

import array
import decimal
import fractions
import itertools
import types
from collections import UserList
from dataclasses import dataclass, field

import array_api_strict
import ml_dtypes
import numpy as np

import gpuslice as gs


class Own(Exception):
    """What the methods of hostile objects raise."""


@dataclass
class Value:
    """A value, and the plain one that it stands for in each role of an argument. In other roles it must be refused.

    The roles are "data" (an array), "seq", "ints" (bounds and sizes), "int", "position", "flag", "sizes" (of
    split_to_sequence), "views" (of several dtypes), "dtype", and "choice" (of True, False and None).
    """

    make: object
    meanings: dict = field(default_factory=dict)


def raising(method):
    """Return an object of a class with one method, which raises an error."""

    def fail(*args, **kwargs):
        raise Own(method)

    return type(f"Raises_{method}", (), {method: fail})()


class Says:
    """An object whose methods return what it is told."""

    def __new__(cls, bases=(), **answers):
        methods = {name: lambda self, *args, answer=answer, **kwargs: answer for name, answer in answers.items()}
        return type("Says", bases, methods)()


class Foreign:
    """An array that names a namespace that is not its own."""

    shape, dtype, ndim, device = (3,), np.dtype(np.int64), 1, "cpu"

    def __init__(self, namespace):
        self.namespace = namespace

    def __array_namespace__(self, api_version=None):
        return self.namespace


class Liar(np.ndarray):
    """A subclass that describes its memory wrongly."""

    shape = strides = property(lambda self: (10**6,))
    size = nbytes = property(lambda self: 10**9)
    __array_interface__ = property(lambda self: {"data": (8, False), "shape": (9,), "typestr": "<i8", "version": 3})

    def __getitem__(self, index):
        raise Own("__getitem__")

    def __array__(self, *args, **kwargs):
        raise Own("__array__")


class Endless(list):
    """A list whose iterator does not end."""

    def __iter__(self):
        return itertools.cycle(list.__iter__(self))


class Int(int):
    """An int that compares as it likes."""

    def __lt__(self, other):
        return True

    __le__ = __gt__ = __ge__ = __eq__ = __lt__
    __hash__ = int.__hash__


class LyingText(str):
    """A text that equals every other."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("float32")


def with_item(values):
    """Return a list with one more item, which is no int and no array."""
    list.append(values, "item")
    return values


def nested(depth):
    """Return a list in a list, so deep."""
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def holding_itself(container):
    """Return a list, tuple or dictionary that holds itself."""
    values = []
    values.append({0: values} if container is dict else container([values]))
    return values[0]


def of_array(make):
    """Return a value for an array, which means the same as a plain one."""
    made = make()
    plain = np.array(np.asarray(made))
    meanings = {"data": plain}
    if isinstance(made, np.bool):
        meanings["flag"] = int(plain)
    if plain.dtype.kind in "iu":
        ints = plain.reshape(-1).tolist()
        if plain.ndim == 0:
            meanings |= dict.fromkeys(("int", "flag", "sizes"), ints[0])
        if plain.ndim == 1:
            meanings |= dict.fromkeys(("ints", "sizes"), ints)
        if plain.size == 1:
            meanings["position"] = ints[0]
    return Value(make, meanings)


def of_strict(values):
    """Return a value for an array of array-api-strict, which NumPy's arrays mean too except as data."""
    made = array_api_strict.asarray(values)
    return Value(lambda: made, of_array(lambda: np.asarray(values)).meanings | {"data": made})


def of_int(make, number):
    """Return a value for something that is an int, and not an array."""
    return Value(make, dict.fromkeys(("int", "position", "flag", "sizes"), number))


def of_ints(make, numbers):
    """Return a value for a sequence of ints that is not an array."""
    return Value(make, {"ints": numbers, "sizes": numbers})


def _masked(values, mask):
    return Value(lambda: np.ma.array(values, mask=mask))


ARRAYS = [
    np.array(1), np.array([1]), np.array([0, 1]), np.array([[1]]), np.zeros(0, int), np.zeros((0, 3)),
    np.arange(24).reshape(2, 3, 4), np.arange(6.0).reshape(2, 3), np.array([1], ">i8"), np.array([2**64 - 1], np.uint64),
    np.array([True]), np.array(["a", "é"]), np.array([b"a", b"\xff"]), np.array(["a"], np.dtypes.StringDType()),
    np.array([(1, 2.0)], "i4,f8"), np.array([[1], None], object), np.array(["2026-11-30"], "M8[D]"), np.ones(2, "m8[s]"),
    np.arange(3).astype(ml_dtypes.bfloat16), np.array([1, 0]).astype(ml_dtypes.int4), np.zeros((1,) * 64),
    np.array([1j]), np.zeros(3, "V0"), np.zeros(2, "U0"), np.broadcast_to(np.int8(1), (2, 2)), np.array([np.nan]),
]  # fmt: skip
SCALARS = [np.int64(1), np.uint8(0), np.float32(1), np.bool_(True), np.str_("a"), np.bytes_(b"a"), np.complex64(1)]
SCALARS += [np.datetime64("NaT"), np.array([(1, 2.0)], "i4,f8")[0], ml_dtypes.bfloat16(1), ml_dtypes.int4(1)]

SOUND = [
    *(of_array(lambda made=made: made.copy()) for made in ARRAYS),
    *(of_array(lambda made=made: made) for made in SCALARS),
    of_array(lambda: np.arange(6)[::-2]),
    of_array(lambda: np.arange(24).reshape(2, 3, 4).T),
    of_array(lambda: np.arange(4).view(np.recarray)),
    of_array(lambda: np.array([[0, 1]]).view(np.matrix)),
    of_array(lambda: np.frombuffer(b"\0\1\2\3", np.uint8)),
    *(of_strict(values) for values in (1, [1], [0, 1], [[1, 0], [0, 1]], [1.0, 2.0], [True], [])),
    Value(lambda: np.array([0, 1]).view(Liar), {"data": np.array([0, 1]), "ints": [0, 1], "sizes": [0, 1]}),
    *(of_int(lambda number=number: number, number) for number in (0, 1, -1, 2, 2**31, -(2**63), 2**64, 10**5000)),
    of_int(lambda: Int(1), 1),
    of_int(lambda: Says(__index__=1), 1),
    of_ints(lambda: [0, 1], [0, 1]),
    of_ints(lambda: (1,), [1]),
    Value(
        lambda: [np.int64(1), np.array(0)],
        {"ints": [1, 0], "sizes": [1, 0], "seq": [np.array(1), np.array(0)]},
    ),
    Value(lambda: [[0]]),
    Value(lambda: [np.arange(2), np.array(["a"])], {"views": [np.arange(2), np.array(["a"])]}),
    of_ints(lambda: range(2), [0, 1]),
    of_ints(lambda: array.array("l", [0, 1]), [0, 1]),
    of_ints(lambda: memoryview(array.array("l", [2, 1])), [2, 1]),
    of_ints(lambda: UserList([1]), [1]),
    of_ints(lambda: Endless([1]), [1]),
    of_ints(lambda: Endless([0, 1]), [0, 1]),
    of_ints(lambda: [10**5000, -(10**5000)], [10**5000, -(10**5000)]),
    Value(list, {"ints": [], "sizes": [], "seq": []}),
    Value(tuple, {"ints": [], "sizes": [], "seq": []}),
    Value(lambda: True, {"flag": 1, "choice": True}),
    Value(lambda: False, {"flag": 0, "choice": False}),
    Value(lambda: None, {"choice": None}),
    Value(lambda: gs.Sequence([], "int64"), {"seq": gs.Sequence([], "int64"), "ints": [], "sizes": []}),
    Value(lambda: gs.Sequence([np.arange(3)]), {"seq": [np.arange(3)]}),
    Value(lambda: (np.arange(3), np.float64(1).astype(int)), {"seq": [np.arange(3), np.array(1)]}),
    *(Value(lambda dtype=dtype: dtype, {"dtype": "float32"}) for dtype in ("float32", np.float32, np.dtype("f4"))),
    Value(lambda: array_api_strict.float32, {"dtype": "float32"}),
    Value(lambda: np.dtype(object), {"dtype": "string"}),
    Value(lambda: [np.float64(1)], {"seq": [np.array(1.0)]}),
    Value(lambda: [np.array([0, 1])], {"seq": [np.array([0, 1])]}),
]

RAISING = ("__index__", "__int__", "__len__", "__getitem__", "__iter__", "__eq__", "__hash__", "__bool__", "__repr__")
RAISING += ("__str__", "__array__", "__array_interface__", "__array_namespace__", "__getattr__", "__getattribute__")
SEQUENCE = (types.SimpleNamespace(), UserList)
OTHERS = [
    int, type, np.ndarray, array_api_strict.asarray, np, itertools, Own, Own("text"), ..., NotImplemented,
    1.0, float("nan"), float("inf"), 1j, "", "01", "text" * 999, "\udc80", b"", b"\0\1", bytes(10**6), bytearray(b"\0"),
    decimal.Decimal(1), fractions.Fraction(1), {}, {0: 1}, {0}, frozenset({0}), slice(0, 1), object(), "int4", "float8",
    len, lambda *args: 0, [None], ["1"], [1.0], [True], (b"",), [...],
    [float("nan")], np.dtype("M8[s]"), np.dtype("f4,f4"), np.random.default_rng(0), nested(20_000),
    (nested(20_000),), {0: nested(20_000)}, holding_itself(list), holding_itself(tuple), holding_itself(dict),
    np.errstate(), type("A" * 10**6, (), {})(),
]  # fmt: skip
HOSTILE = [
    *(Value(lambda other=other: other) for other in OTHERS),
    *(Value(lambda method=method: raising(method)) for method in RAISING),
    Value(lambda: itertools.count()),
    Value(lambda: (item for item in [0])),
    Value(lambda: range(10**15)),
    Value(lambda: LyingText("text")),
    Value(lambda: Says(__index__="1")),
    Value(lambda: Says(__index__=1.5)),
    Value(lambda: with_item(Says(__len__=-1, __getitem__=0, bases=(list,)))),
    Value(lambda: with_item(Says(__len__="2", bases=(list,)))),
    Value(lambda: Says(__len__=2, __getitem__="a", bases=(UserList,))),
    Value(lambda: Says(__eq__=True, __hash__=0, __bool__=True)),
    Value(lambda: Says(__array__=[1, 2], __array_interface__={})),
    Value(lambda: Says(__getattr__=None)),
    Value(lambda: Says(__getattr__=np)),
    Value(lambda: Says(__array_namespace__=array_api_strict)),
    Value(lambda: Foreign(None)),
    Value(lambda: Foreign(np)),
    Value(lambda: Foreign(types.SimpleNamespace(__name__="numpy"))),
    Value(lambda: Foreign(types.SimpleNamespace(__name__=5))),
    Value(lambda: Foreign([])),
    _masked(1, True),
    _masked([0, 1], [True, False]),
    _masked([[0, 1]], False),
    Value(lambda: np.ma.masked),
    Value(lambda: [np.ma.array(1)]),
]
