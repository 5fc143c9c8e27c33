"""What the tests know of each array library, one row per library: the twin of gpuslice/library_rows.py.

A new library is one row there and one row here.
"""

import os
from collections.abc import Callable, Set
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import array_api_compat
import numpy as np
import pytest


@dataclass(frozen=True)
class Library:
    """A library, and what can be asked of its arrays.

    Attributes
    ----------
    name : str
        The package that defines the arrays.
    namespace : str
        The module to import, with ``asarray`` and the other functions of the Array API standard.
    to_numpy : callable
        Return the items of an array in NumPy.
    executors : set of str
        The executors that a trace may name.
    whole_suite : bool
        Whether the fixture ``xp`` has it. The others have the suite of test_libraries.py and the cases of test_cases.py.
    mutable, views, backward_views : bool
        Whether arrays can be written in place, and whether a slice shares memory with its array, with a positive and
        with a negative step.
    lacks : set of str
        ONNX names of dtypes that the library does not have, or does not make of NumPy's.
    lazy : bool
        Whether arrays have no values yet, so that they cannot be bounds or positions.
    gpu : bool
        Whether it needs a GPU.
    devices : callable
        Given the namespace, return the devices on which arrays can be made, apart from the first.
    """

    name: str
    namespace: str
    to_numpy: Callable[[Any], np.ndarray]
    executors: Set[str] = frozenset({"generic"})
    whole_suite: bool = False
    mutable: bool = True
    views: bool = True
    backward_views: bool = True
    lacks: Set[str] = frozenset()
    lazy: bool = False
    gpu: bool = False
    devices: Callable[[ModuleType], list[Any]] = lambda xp: []

    @property
    def is_installed(self) -> bool:
        """Whether the library can be imported."""
        return find_spec(self.namespace.partition(".")[0]) is not None

    @property
    def xp(self) -> ModuleType:
        """The module to import. The test is skipped if the library is not installed."""
        return pytest.importorskip(self.namespace, reason=f"{self.name} is not installed")

    @property
    def marks(self) -> list[pytest.MarkDecorator]:
        """The marks of a test that uses it."""
        return [pytest.mark.gpu] if self.gpu else []

    @property
    def param(self) -> Any:
        """This library as a parameter of a test."""
        return pytest.param(self, id=self.name, marks=self.marks)


def _mlx_to_numpy(array):
    import ml_dtypes
    import mlx.core

    if str(array.dtype) != "mlx.core.bfloat16":
        return np.array(array)
    return np.array(array.view(mlx.core.uint16)).view(ml_dtypes.bfloat16)


_TEXT, _WIDE = {"string"}, {"int64", "uint64", "float64", "complex128"}
_NOT_IN_JAX = set() if os.environ.get("JAX_ENABLE_X64") == "1" else _WIDE
_IMMUTABLE = {"mutable": False, "views": False, "backward_views": False}
LIBRARIES = (
    Library("numpy", "numpy", lambda array: array, {"host", "numpy"}, whole_suite=True),
    Library("cupy", "cupy", lambda array: array.get(), {"cuda"}, whole_suite=True, lacks=_TEXT | {"int4"}, gpu=True),
    Library(
        "array_api_strict",
        "array_api_strict",
        lambda array: np.asarray(array._array),  # from any of its devices
        whole_suite=True,
        lacks=_TEXT | {"int4", "float16", "bfloat16"},
        devices=lambda xp: [xp.Device("device1"), xp.Device("device2")],
    ),
    Library(
        "torch",
        "torch",
        lambda array: array.numpy(),
        {"host", "numpy", "generic"},
        whole_suite=True,
        backward_views=False,
        lacks=_TEXT | {"int4", "bfloat16"},
    ),
    Library("jax", "jax.numpy", np.asarray, {"host", "numpy"}, **_IMMUTABLE, lacks=_TEXT | _NOT_IN_JAX),
    # Its chunks are NumPy's, which it copies when it computes.
    Library(
        "dask", "dask.array", lambda array: array.compute(), {"host", "numpy"}, **_IMMUTABLE, lazy=True, lacks=_TEXT
    ),
    Library("sparse", "sparse", lambda array: array.todense(), **_IMMUTABLE),
    Library("mlx", "mlx.core", _mlx_to_numpy, **_IMMUTABLE, lacks=_TEXT | {"float64", "complex128", "int4"}),
    Library(
        "ndonnx",
        "ndonnx",
        lambda array: array.unwrap_numpy(),
        **_IMMUTABLE,
        lacks=_TEXT | {"complex64", "complex128", "bfloat16", "int4"},
    ),
)
WHOLE_SUITE = [library for library in LIBRARIES if library.whole_suite]
_BY_NAME = {library.name: library for library in LIBRARIES}


def library_of(xp):
    """Return the row of an Array API namespace."""
    return _BY_NAME[xp.__name__.removeprefix("array_api_compat.").partition(".")[0]]


def backward_step(xp):
    """Return -1, or 1 for a library that has no negative strides."""
    return -1 if library_of(xp).backward_views else 1


def make(xp, array):
    """Return a NumPy array as one of a library. NumPy's own is unchanged: its layout in memory matters."""
    if xp is np:
        return array
    # PyTorch refuses negative strides, warns of read-only memory, and crashes on items that are not aligned.
    taken = array.flags.writeable and array.flags.aligned and min(array.strides, default=0) >= 0
    return xp.asarray(array if taken or library_of(xp).backward_views else array.copy())


def to_numpy(array):
    """Return the items of an array of any library in NumPy."""
    if isinstance(array, np.ndarray):
        return array
    return library_of(array_api_compat.array_namespace(array)).to_numpy(array)
