"""Arrays from .npy and .npz files: without pickle, text as fixed-width strings, nothing of a file left out."""

import math
import mmap
import os
import stat
import warnings
import zipfile
from collections import abc
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuslice.cli.progress import Progress
from gpuslice.cli.text import reason
from gpuslice.dtypes import dtype_name
from gpuslice.libraries import Array
from gpuslice.onnx.types import element_types
from gpuslice.sequence import Sequence

_NPY, _ZIP = b"\x93NUMPY", b"PK"
# Versions of the format, and the bytes in which each has the length of the header. 3.0 is 2.0 with names of fields in
# UTF-8; no type of ONNX has fields.
_VERSIONS: dict[tuple[int, ...], int] = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
_LONGEST_HEADER = 10_000  # NumPy reads no longer ones
_LONGEST_REASON = 300
_CHUNK = 1 << 20
_SMALL = 1 << 20  # smaller files are read: a map takes longer
_DEEPEST = 100  # brackets and signs, one in another, that Python's parser has memory for
_LAST_CODE_POINT = 0x10FFFF


def read_array(path: str, dtype: str | None = None) -> Array:
    """Return the array in an .npy file. A large file is mapped: what of it is never used is never read.

    Parameters
    ----------
    path : str
    dtype : str, optional
        ONNX name of the element type. The .npy format has no types for bfloat16, float8 and others. It holds their
        bytes, and only this says what they are.

    Raises
    ------
    OSError
        The file does not exist or cannot be read, or the array does not fit into memory.
    ValueError
        It is not an .npy file, it is damaged, or it holds pickled objects.
    TypeError
        The array has another dtype.
    """
    if not path:
        raise ValueError("a file must have a name; got ''")
    with _reading(path), Path(path).open("rb") as file:
        status = os.fstat(file.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
        with Progress(_label(path), size or 0) as progress:
            array = _array(file, size, progress, can_be_mapped=size is not None)
    return _typed(array, path, dtype)


def read_arrays(paths: str, dtype: str | None = None) -> list[Array] | Sequence[Array]:
    """Return the arrays of a sequence: an .npz file in its order, or .npy files separated by commas.

    If there are none, only ``dtype`` says what the sequence would hold.
    """
    if paths.endswith(".npz"):
        with _reading(paths):
            members = _members(paths)
        arrays = [_typed(array, f"{paths}: {name}", dtype) for name, array in members]
    else:
        arrays = [read_array(path, dtype) for path in paths.split(",")] if paths else []
    return arrays if arrays or dtype is None else Sequence.of_items((), dtype)


def _members(path: str) -> list[tuple[str, Array]]:
    with Path(path).open("rb") as file:
        start = file.peek(len(_NPY))
        if start.startswith(_NPY):
            raise ValueError("it holds one array; an .npz file is expected")
        if not start.startswith(_ZIP):
            raise ValueError("not an .npz file")
        with zipfile.ZipFile(file) as archive:
            return _arrays(archive, path)


def _arrays(archive: zipfile.ZipFile, path: str) -> list[tuple[str, Array]]:
    arrays: dict[str, Array] = {}
    members = archive.infolist()
    with Progress(_label(path), sum(info.file_size for info in members)) as progress:
        for info in members:
            if info.filename in arrays:
                raise ValueError(f"it holds two arrays with the name {info.filename!r}")
            with archive.open(info) as member:
                try:
                    arrays[info.filename] = _array(member, info.file_size, progress)
                except ValueError as error:
                    raise ValueError(f"{info.filename}: {error}") from None
    return list(arrays.items())


def _label(path: str) -> str:
    return f"reading {Path(path).name}"


@contextmanager
def _reading(path: str) -> abc.Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: {reason(error)}") from None
    except MemoryError as error:
        raise OSError(f"{path}: cannot be read; {reason(error)}") from None
    except Exception as error:  # a damaged file raises any error of its parser, which may quote the file
        words = reason(error)
        cut = "..." if len(words) > _LONGEST_REASON else ""
        raise ValueError(f"{path}: cannot be read; {words[:_LONGEST_REASON]}{cut}") from None


def _array(file: IO[bytes], size: int | None, progress: Progress, *, can_be_mapped: bool = False) -> Array:
    """Return the array in an open .npy file of ``size`` bytes; None if the size is not known."""
    head = _head(file)
    shape, fortran_order, dtype = _described(head)
    if dtype.hasobject:
        raise ValueError("text must be fixed-width strings, and other objects are not supported")
    if dtype.subdtype is not None:
        raise ValueError(f"items that are arrays are not supported; its type is {dtype}")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or (size is not None and len(head) + count * dtype.itemsize > size):
        raise ValueError(f"damaged or cut short: its header promises an array of shape {shape} and type {dtype}")
    flat = _mapped(file, count, dtype) if can_be_mapped and count * dtype.itemsize >= _SMALL else None
    if flat is None:
        flat = np.ndarray(count, dtype)  # np.empty gives strings of length 0 a length of 1
        if flat.nbytes:
            _fill(flat.view(np.uint8).data, file, progress)
    if file.read(1):  # at the end of a member, zipfile compares the checksum
        raise ValueError("more bytes follow the array, and would be lost")
    if dtype.kind == "U" and flat.nbytes and flat.view(f"{dtype.byteorder}u4").max() > _LAST_CODE_POINT:
        raise ValueError("damaged: its text has numbers that are no characters")
    return flat.reshape(shape, order="F" if fortran_order else "C")


def _head(file: IO[bytes]) -> bytes:
    """Return the header of an .npy file and what precedes it: the magic string, the version, the header's length."""
    head = file.read(len(_NPY) + 2)
    if head.startswith(_ZIP):
        raise ValueError("an .npz file, which holds arrays by name; an .npy file is expected")
    if not head.startswith(_NPY):
        raise ValueError("not an .npy or .npz file")
    version = tuple(head[len(_NPY) :])
    if version not in _VERSIONS:
        raise ValueError(f"not an .npy or .npz file of a known version; its version is {'.'.join(map(str, version))}")
    digits = file.read(_VERSIONS[version])
    length = int.from_bytes(digits, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes; at most {_LONGEST_HEADER} are read")
    return head + digits + file.read(length)


@lru_cache(maxsize=256)
def _described(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, whether the order is Fortran's, and the dtype that a header describes."""
    # The name that NumPy gives to float8_e5m2, and does not know when it reads it again.
    file = BytesIO(head.replace(b"'<f1'", b"'|V1'", 1))
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():  # of Python's parser
        warnings.simplefilter("ignore")
        try:
            return read(file, max_header_size=_LONGEST_HEADER)
        except ValueError as error:
            raise ValueError(f"damaged: {error}") from None
        except Exception as error:  # of Python's parser
            # It says so of brackets in brackets too. A short header with a few takes next to nothing.
            if isinstance(error, MemoryError) and max(map(head.count, (b"(", b"[", b"{", b"-", b"+", b"~"))) < _DEEPEST:
                raise
            raise ValueError("damaged: its header cannot be parsed") from None


def _mapped(file: IO[bytes], count: int, dtype: np.dtype[Any]) -> Array | None:
    """Return the next items of a file as a read-only map of it, and go past them; None if it cannot be mapped."""
    start = file.tell()
    try:
        mapped = mmap.mmap(file.fileno(), start + count * dtype.itemsize, access=mmap.ACCESS_READ)
    except OSError:  # the file system has no maps, or there are no addresses for one
        return None
    flat: Array = np.ndarray(count, dtype, mapped, start)
    file.seek(flat.nbytes, os.SEEK_CUR)
    return flat


def _fill(target: memoryview, file: Any, progress: Progress) -> None:
    done = 0
    while done < len(target):
        count = file.readinto(target[done : done + _CHUNK])
        if not count:
            raise ValueError(f"cut short: {len(target)} bytes of items are expected; it has {done}")
        done += count
        progress.add(count)


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
    if dtype not in (known := element_types()):
        raise TypeError(f"{path}: there is no element type {dtype!r}; there are {', '.join(sorted(known))}")
    raise TypeError(f"{path}: must hold {dtype}; it holds {dtype_name(array.dtype)}")
