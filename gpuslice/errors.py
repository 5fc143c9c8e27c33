"""Rules raise without a prefix; whoever the user called adds the operator and its version, once."""

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_REFUSALS = (IndexError, TypeError, ValueError)


def _prefix(error: BaseException, name: str) -> None:
    error.args = (f"{name}: {error}",)


class speaking_as:
    """Put a name before the message of any error that the block raises for its arguments."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if isinstance(error, _REFUSALS):
            _prefix(error, self.name)


def speaks_as(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that its errors begin with ``name``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except _REFUSALS as error:  # a with block would take longer than the rest of this
                _prefix(error, name)
                raise

        return call

    return decorate
