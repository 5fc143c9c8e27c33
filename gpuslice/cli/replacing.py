"""Files that are replaced as a whole: an error or a signal leaves the old file, and no temporary one."""

import os
import stat
import tempfile
from collections import abc
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from gpuslice.cli.interrupts import uninterrupted
from gpuslice.cli.text import reason


def check_target(path: str) -> None:
    """Raise OSError if a file cannot be written, with the reason. What is there stays as it is."""
    with _writing(path):
        target, _ = _resolved(path)
        with uninterrupted():
            tempfile.TemporaryFile(dir=target.parent).close()


@contextmanager
def _writing(path: str) -> abc.Iterator[None]:
    try:
        yield
    except (OSError, MemoryError) as error:
        raise OSError(f"{path}: cannot be written; {reason(error)}") from None


@contextmanager
def replacing(path: str) -> abc.Iterator[IO[bytes]]:
    """Open a new file beside ``path`` that replaces it if the block ends without an error. Links are followed."""
    with _writing(path), ExitStack() as stack:
        target, old = _resolved(path)
        with uninterrupted():
            number, name = tempfile.mkstemp(dir=target.parent, prefix=".gpuslice-")
            stack.callback(_remove, name)
            file = stack.enter_context(os.fdopen(number, "w+b"))
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        _copy_mode(old, name)
        Path(name).replace(target)


def _resolved(path: str) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path means, and what is there; raise OSError if it must not be replaced."""
    try:
        target = Path(os.path.realpath(path))
        old = target.stat()
    except FileNotFoundError:
        return target, None
    except ValueError as error:  # a NUL, or characters that no file name can have
        raise OSError(reason(error)) from None
    if not stat.S_ISREG(old.st_mode):
        raise OSError("not a regular file")
    # For root, os.access allows everything.
    if not old.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise OSError("the file is read-only")
    return target, old


def _copy_mode(old: os.stat_result | None, path: str) -> None:
    """Give a new file the owner and mode of the old one; without an old one, the mode of any new file."""
    if old is None:
        mask = os.umask(0o077)
        os.umask(mask)
        Path(path).chmod(0o666 & ~mask)
        return
    with suppress(OSError, AttributeError):  # only root may give files away, and Windows has no owners
        os.chown(path, old.st_uid, old.st_gid)
    Path(path).chmod(stat.S_IMODE(old.st_mode))


def _remove(path: str) -> None:
    with suppress(OSError), uninterrupted():
        Path(path).unlink(missing_ok=True)
