"""The prefix of error messages. Rules raise without one; the entry point adds operator and version, once."""

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_PREFIXED = (IndexError, TypeError, ValueError)


def _add_prefix(error: BaseException, prefix: str) -> None:
    if isinstance(error, (UnicodeDecodeError, UnicodeEncodeError)):  # their message is made of five arguments
        error.reason = f"{error.reason} ({prefix})"
    else:
        error.args = (f"{prefix}: {error}",)


class error_prefix:
    """Context manager that puts a prefix before the message of an IndexError, TypeError or ValueError.

    Parameters
    ----------
    prefix : str
        Without the colon, such as "Slice-13".
    """

    __slots__ = ("prefix",)

    prefix: str

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if isinstance(error, _PREFIXED):
            _add_prefix(error, self.prefix)


def prefixes_errors(prefix: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that does for a function what `error_prefix` does for a block."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except _PREFIXED as error:  # a with block would take longer than the rest of this
                _add_prefix(error, prefix)
                raise

        return call

    return decorate
