"""What the tests know of each array library, one row per library: the twin of gpuslice/libraries.py.

A new library is one row there and one row here.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass
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
        Whether the fixture ``xp`` has it. The other libraries have only the short tests of test_libraries.py.
    mutable, views, backward_views : bool
        Whether arrays can be written in place, and whether a slice shares memory with its array, with a positive and
        with a negative step.
    lacks : set of str
        ONNX names of dtypes that the library does not have, or does not make of NumPy's.
    gpu : bool
        Whether it needs a GPU.
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
    gpu: bool = False

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


_TEXT, _WIDE = {"string"}, {"int64", "uint64", "float64", "complex128"}
LIBRARIES = (
    Library("numpy", "numpy", lambda array: array, {"host", "numpy"}, whole_suite=True),
    Library("cupy", "cupy", lambda array: array.get(), {"cuda"}, whole_suite=True, lacks=_TEXT | {"int4"}, gpu=True),
    Library(
        "array_api_strict",
        "array_api_strict",
        np.from_dlpack,
        whole_suite=True,
        lacks=_TEXT | {"int4", "float16", "bfloat16"},
    ),
    Library("torch", "torch", lambda array: array.numpy(), backward_views=False, lacks=_TEXT | {"int4", "bfloat16"}),
    Library("jax", "jax.numpy", np.asarray, mutable=False, views=False, backward_views=False, lacks=_TEXT | _WIDE),
    Library("dask", "dask.array", lambda array: array.compute(), mutable=False, views=False, backward_views=False),
)
WHOLE_SUITE = [library for library in LIBRARIES if library.whole_suite]
_BY_NAME = {library.name: library for library in LIBRARIES}


def library_of(xp):
    """Return the row of an Array API namespace."""
    return _BY_NAME[xp.__name__.removeprefix("array_api_compat.").partition(".")[0]]


def make(xp, array):
    """Return a NumPy array as one of a library. NumPy's own is unchanged: its layout in memory matters."""
    return array if xp is np else xp.asarray(array)


def to_numpy(array):
    """Return the items of an array of any library in NumPy."""
    if isinstance(array, np.ndarray):
        return array
    return library_of(array_api_compat.array_namespace(array)).to_numpy(array)
