"""Text on the terminal: in any encoding, and the reason of an error, which is never empty."""

import errno
import os
import sys
from contextlib import suppress
from typing import TextIO


def reason(error: BaseException) -> str:
    """Return why something failed, in words."""
    if isinstance(error, MemoryError):
        return str(error) if "out of memory" in str(error) else f"out of memory: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.strerror:
        return "out of memory" if error.errno == errno.ENOMEM else error.strerror
    return str(error) or type(error).__name__


def printable(text: str) -> str:
    """Return text with escapes for what cannot be shown: control characters, line ends, bytes that are no UTF-8."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def show(text: str) -> None:
    """Print text on standard output; characters that its encoding lacks are escaped.

    Raises
    ------
    OSError
        It cannot be written. A BrokenPipeError stays one: nobody reads any more.
    """
    try:
        _print(text, sys.stdout)
    except OSError as error:
        _discard_stdout()
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(f"standard output: cannot be written; {reason(error)}") from None


def report(text: str) -> None:
    """Print one line on standard error, if there is one."""
    if sys.stderr is not None:
        with suppress(OSError):
            _print(f"gpuslice: {printable(' '.join(text.split()))}", sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _discard_stdout() -> None:
    # Python writes what is left in the buffer when it ends, which would fail again.
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
