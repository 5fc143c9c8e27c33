"""Arrays from and to .npy and .npz files: without pickle, text as fixed-width strings, files replaced as a whole."""

import os
import zipfile
from collections import abc
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np

from gpuslice.dtypes import dtype_name
from gpuslice.libraries import Array

_LONGEST_NAME = 255


def read_array(path: str, dtype: str | None = None) -> Array:
    """Return the array in an .npy file.

    Parameters
    ----------
    path : str
    dtype : str, optional
        ONNX name of the element type. NumPy writes a bfloat16 as two bytes without a type, so only this tells it.

    Raises
    ------
    OSError
        The file does not exist or cannot be read.
    ValueError
        It is not an .npy file, or it holds pickled objects.
    TypeError
        The array has another dtype.
    """
    array = _load(path)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(f"{path}: holds several arrays; one is expected")
    return _typed(array, path, dtype)


def read_arrays(paths: str, dtype: str | None = None) -> list[Array]:
    """Return the arrays of a sequence: an .npz file in its order, or .npy files separated by commas."""
    if not paths:
        return []
    if paths.endswith(".npz"):
        return [_typed(array, f"{paths}: {name}", dtype) for name, array in _load_all(paths)]
    return [read_array(path, dtype) for path in paths.split(",")]


def write_array(path: str, array: Array) -> None:
    """Write one array to an .npy file. If that fails, an old file stays as it was."""
    with _replacing(path) as file:
        np.lib.format.write_array(file, _storable(array), allow_pickle=False)


def write_arrays(path: str, arrays: abc.Mapping[str, Array]) -> None:
    """Write arrays by name to an .npz file. If that fails, an old file stays as it was."""
    # Not np.savez: it would take an array with the name "file" for its own argument.
    with _replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _storable(array), allow_pickle=False)


def _load(path: str) -> Array:
    with _reading(path):
        return np.load(path, allow_pickle=False)


def _load_all(path: str) -> list[tuple[str, Array]]:
    with _reading(path), np.load(path, allow_pickle=False) as archive:
        arrays = [(name, archive[name]) for name in archive.files]
    for name, array in arrays:
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: must hold only .npy files; {name} is not one")
    return arrays


@contextmanager
def _reading(path: str) -> abc.Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a damaged file raises any error of its parser
        reason = "text must be fixed-width strings" if "Object arrays" in str(error) else "not an .npy or .npz file"
        raise ValueError(f"{path}: cannot be read; {reason}") from None


def _typed(array: Array, path: str, dtype: str | None) -> Array:
    if dtype is None or dtype_name(array.dtype) == dtype:
        return array
    if array.dtype.kind == "V" and array.dtype.fields is None:
        import ml_dtypes

        wanted = getattr(ml_dtypes, dtype, None)
        if (
            isinstance(wanted, type)
            and issubclass(wanted, np.generic)
            and np.dtype(wanted).itemsize == array.dtype.itemsize
        ):
            return array.view(wanted)
    raise TypeError(f"{path}: must hold {dtype}; it holds {dtype_name(array.dtype)}")


def _storable(array: Array) -> Array:
    return np.asarray(array, dtype=str) if array.dtype.kind in "OT" else array


@contextmanager
def _replacing(path: str) -> abc.Iterator[IO[bytes]]:
    """Open a new file beside ``path`` that replaces it if the block ends without an error. Links are followed."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise OSError(f"{path}: cannot be written; not a regular file")
    beside = target.with_name(f".{os.getpid()}.{target.name}"[:_LONGEST_NAME])
    try:
        with beside.open("xb") as file:
            yield file
        beside.replace(target)
    except OSError as error:
        raise OSError(f"{path}: cannot be written; {error.strerror or 'failed'}") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
