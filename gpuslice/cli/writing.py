"""Arrays, and results that are not copied yet, into .npy and .npz files."""

import errno
import mmap
import os
import reprlib
import zipfile
from collections import abc
from contextlib import ExitStack
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpuslice.cli.copies import Copies, Value, is_numpy, part_of, regions, size_of
from gpuslice.cli.interrupts import uninterrupted
from gpuslice.cli.progress import Progress
from gpuslice.cli.replacing import replacing
from gpuslice.engine.views import index_of
from gpuslice.libraries import Array

_SMALL = 1 << 20
_FLUSHED = 1 << 28
_LONGEST_NAME = 0xFFFF - len(".npy")  # a zip file has 16 bits for the length
# What file systems say that cannot reserve space or have no maps, and what is said if there are no addresses for one.
_CANNOT_MAP = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENODEV, errno.ENOMEM)
_USER_DEFINED = 2  # what numpy.dtype.isbuiltin says of the types of ml_dtypes


def check_names(names: abc.Collection[str]) -> None:
    """Raise ValueError if an .npz file cannot hold arrays of these names, or numpy.load would not find one of them."""
    known = set(names)
    for name in known:
        if "\0" in name:
            raise ValueError(f"an .npz file cannot hold the name {name!r}, which has a NUL character")
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            raise ValueError(f"an .npz file cannot hold the name {name!r}, which is no Unicode text") from None
        if size > _LONGEST_NAME:
            raise ValueError(
                f"an .npz file cannot hold a name of more than {_LONGEST_NAME} bytes; "
                f"got {size} in {reprlib.repr(name)}"
            )
        if f"{name}.npy" in known:
            raise ValueError(
                f"an .npz file cannot hold both {name!r} and {name + '.npy'!r}: numpy.load returns one for both names"
            )


def write_array(path: str, value: Value, copies: Copies | None = None) -> None:
    """Write one array, or a value that is not copied yet, to an .npy file. If that fails, an old file stays."""
    copies = copies or Copies()
    value = _without_objects(value, copies)
    head, size = _head(_stored_dtype(value.dtype), value.shape), size_of(value)
    with replacing(path) as file, _Steps(path, size, file) as steps:
        file.write(head)
        mapped = _reserved(file, len(head) + size) if size >= _SMALL and is_numpy(value) else None
        if mapped is None:
            _write_items(file, value, copies, steps)
        else:
            _copy_items(np.ndarray(value.shape, value.dtype, mapped, len(head)), value, copies, steps)


def write_arrays(path: str, values: abc.Mapping[str, Value], copies: Copies | None = None) -> None:
    """Write arrays, or values that are not copied yet, by name to an .npz file. If that fails, an old file stays."""
    copies = copies or Copies()
    check_names(values.keys())
    total = sum(map(size_of, values.values()))
    # Not np.savez: it would take an array with the name "file" for its own argument.
    with replacing(path) as file, _Steps(path, total, file) as steps, zipfile.ZipFile(file, "w") as archive:
        for name, given in copies.batches(values):
            value = _without_objects(given, copies, f"output {name!r}")
            info, head = zipfile.ZipInfo(f"{name}.npy"), _head(_stored_dtype(value.dtype), value.shape)
            if isinstance(value, np.ndarray) and value.nbytes < _SMALL:
                archive.writestr(info, head + _bytes(value))
                steps.add(value.nbytes)
                continue
            with ExitStack() as stack:
                with uninterrupted():  # an archive with a member that nobody closes complains when it is dropped
                    member = stack.enter_context(archive.open(info, "w", force_zip64=True))
                member.write(head)
                _write_items(member, value, copies, steps)


def _write_items(member: IO[bytes], value: Value, copies: Copies, steps: "_Steps") -> None:
    """Write the items of a value in C order, in pieces, to a file or a part of one."""
    for piece in copies.pieces(value):
        member.write(_bytes(piece))
        steps.add(piece.nbytes)


def _copy_items(target: Array, value: Value, copies: Copies, steps: "_Steps") -> None:
    """Copy a value, in pieces, to an array that is a map of a file."""
    for region in regions(value.shape, value.dtype.itemsize):
        part = target[index_of(region)]
        copies.into(part_of(value, region), part)
        steps.add(part.nbytes)


class _Steps(Progress):
    """The progress of a file. What is written goes to the disk on the way: at the end no signal would be noticed."""

    def __init__(self, path: str, total: int, file: IO[bytes]) -> None:
        super().__init__(f"writing {Path(path).name}", total)
        self._file, self._waiting = file, 0

    def add(self, count: int) -> None:
        """Say that so many bytes more are written."""
        super().add(count)
        self._waiting += count
        if self._waiting >= _FLUSHED:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting = 0


def _reserved(file: IO[bytes], size: int) -> mmap.mmap | None:
    """Return a map of a file that has got its space on the disk; None if this system does not do that.

    Raises
    ------
    OSError
        The disk is full. Without the space, a store into the map would end the process with SIGBUS.
    """
    if not hasattr(os, "posix_fallocate"):
        return None
    file.flush()
    try:
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)
    except OSError as error:
        if error.errno not in _CANNOT_MAP:
            raise
        return None


def _without_objects(value: Value, copies: Copies, argument: str = "output") -> Value:
    """Return a value as it is; text that has objects for items as an array of fixed-width strings."""
    return storable(copies.fresh([value])[0], argument) if value.dtype.kind in "OT" else value


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that an .npy file has for items: raw bytes for types that NumPy does not know."""
    return np.dtype(f"V{dtype.itemsize}") if dtype.isbuiltin == _USER_DEFINED else dtype


def storable(array: Array, argument: str = "output") -> Array:
    """Return text that has objects for items in fixed-width strings.

    Raises
    ------
    TypeError
        The array holds objects other than text, or str and bytes.
    ValueError
        Text ends in NUL, which fixed-width strings lose.
    """
    items = array.reshape(-1).tolist()
    kind = bytes if items and all(isinstance(item, bytes) for item in items) else str
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{argument} must hold text, all str or all bytes; got {type(item).__name__}")
        if item[-1:] in ("\0", b"\0"):
            raise ValueError(
                f"{argument} has text that ends in NUL, which .npy files cannot hold; got {reprlib.repr(item)}"
            )
    return np.array(items, dtype=kind).reshape(array.shape)


@lru_cache(maxsize=256)
def _head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the magic string and the header of an .npy file."""
    file, descr = BytesIO(), np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _bytes(array: Array) -> memoryview:
    """Return the bytes of the items in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
