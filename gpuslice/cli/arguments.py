"""The words NAME=VALUE of the command line."""

import re
import reprlib
import sys
from collections import abc

_INTS = re.compile(r"-?\d+(,-?\d+)*,?|")


def split_word(word: str, form: str, is_name: abc.Callable[[str], bool] = lambda name: False) -> tuple[str, str]:
    """Return name and value of an argument ``NAME=VALUE``. ``form`` says for a message what it must be.

    Both may hold equals signs. The name is the longest one for which ``is_name`` is true, or ends at the first sign.
    """
    parts = word.split("=")
    if len(parts) == 1:
        raise ValueError(f"{form}; got {word!r}")
    for count in range(len(parts) - 1, 0, -1):
        name = "=".join(parts[:count])
        if is_name(name):
            break
    return name, "=".join(parts[count:])


def are_ints(text: str) -> bool:
    """Return whether a value is ints separated by commas, or nothing."""
    return _INTS.fullmatch(text) is not None


def ints(name: str, text: str, scalar: bool) -> int | list[int]:
    """Return a value as ints; raise ValueError if it is none, or if one int is meant and it is another number."""
    if not are_ints(text):
        raise ValueError(f"{name} must be {'one int' if scalar else 'ints separated by commas'}; got {text!r}")
    try:
        values = [int(word) for word in text.split(",") if word]
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise ValueError(f"{name} must be ints of at most {most} digits; got {reprlib.repr(text)}") from None
    if scalar and len(values) != 1:
        raise ValueError(f"{name} must be one int; got {text!r}")
    return values[0] if scalar else values
