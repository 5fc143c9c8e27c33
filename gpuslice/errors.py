"""The words of error messages that many modules share, and their prefix.

Rules raise without a prefix; the entry point adds operator and version, once.
"""

import builtins
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class AutogradError(RuntimeError):
    """An output was given for a call that automatic differentiation would record."""


_PREFIXED = (AutogradError, IndexError, MemoryError, TypeError, ValueError)
_LONGEST_MESSAGE = 500
_LONGEST_NAME = 60
_MOST_NAMES = 8
_LONGEST_SHOWN = 40
_MOST_BITS = 128
# Their repr is short, or as long as they are. Others may be nested, huge, or raise an error when they are shown.
_PLAIN = (bool, float, complex, str, bytes, type(None), type(...))
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


def describe(value: object) -> str:
    """Return what was given, for a message: the type, and the value if it is plain and short."""
    kind = type(value)
    if issubclass(kind, type):
        return f"the class {_shorten(value.__name__, _LONGEST_NAME)}"  # type: ignore[attr-defined]
    name = _shorten(kind.__name__, _LONGEST_NAME)
    if hasattr(builtins, name) and kind is not getattr(builtins, name):  # such as NumPy's bool
        name = f"{str(kind.__module__).partition('.')[0]}.{name}"
    if kind is int:
        return f"{name} {value}" if value.bit_length() <= _MOST_BITS else name  # type: ignore[attr-defined]
    if kind not in _PLAIN or (kind in (str, bytes) and len(value) > _LONGEST_SHOWN):  # type: ignore[arg-type]
        return name
    return f"{name} {value!r}"


def describe_no_array(value: object) -> str:
    """Return what was given in place of an array, with the package that it is from, and how it becomes an array."""
    kind = type(value)
    if issubclass(kind, type):
        return describe(value)
    package = str(kind.__module__).partition(".")[0]
    text = describe(value) if package in ("builtins", "__main__") else f"{package}.{describe(value)}"
    is_alike = any(hasattr(kind, name) for name in _ARRAY_PROTOCOLS)
    return f"{text}; np.asarray(...) gives an array" if is_alike else text


def listed(names: Iterable[str]) -> str:
    """Return names as a message shows them: at most eight, then how many more there are."""
    words = [_shorten(name, _LONGEST_NAME) for name in names]
    more = len(words) - _MOST_NAMES
    return ", ".join(words[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def is_compiling() -> bool:
    """Return whether torch.compile follows this call, and runs it with stand-ins for the tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "compiler") and torch.compiler.is_compiling()


def _add_prefix(error: BaseException, prefix: str) -> None:
    if is_compiling():  # torch.compile cannot follow a change of an exception, and would show that and no more
        return
    if isinstance(error, (UnicodeDecodeError, UnicodeEncodeError)):  # their message is made of five arguments
        error.reason = f"{error.reason} ({prefix})"
    elif type(error).__str__ is BaseException.__str__:
        error.args = (_shorten(f"{prefix}: {str(error) or 'out of memory'}", _LONGEST_MESSAGE),)
    else:  # the message is not made of the arguments
        error.add_note(prefix)


class error_prefix:
    """Context manager that puts a prefix before the message of an IndexError, MemoryError, TypeError or ValueError.

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
