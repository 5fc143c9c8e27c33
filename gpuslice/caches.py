"""What is computed once and kept: caches that are bounded in bytes, 64 MB in all, and a function that empties them."""

from collections import deque
from collections.abc import Callable
from functools import wraps
from sys import getsizeof
from typing import Any, TypeVar

R = TypeVar("R")

_MEGABYTE = 1 << 20
# A result that would take more than this share of its cache is not kept: it would drive out all others.
_LARGEST_SHARE = 4
_CONTAINER_BYTES, _INT_BYTES, _WORD = 56, 40, 1 << 63

_caches: list["BoundedCache"] = []


class BoundedCache:
    """Results by their arguments, up to so many megabytes. If there are more, the oldest ones are dropped.

    There is no lock: a lock that is held when memory runs out may stay held. Each step alone is atomic, and between two
    steps of one thread another may do any of its own.
    """

    def __init__(self, megabytes: int) -> None:
        self.results: dict[tuple[Any, ...], Any] = {}
        self._sizes: deque[tuple[tuple[Any, ...], int]] = deque()
        self._limit = megabytes * _MEGABYTE
        self._size = 0
        _caches.append(self)

    def keep(self, arguments: tuple[Any, ...], result: Any, size: int | None = None) -> None:
        """Keep a result by its arguments. ``size`` is how many bytes both take, if that is known."""
        if size is None:
            size = _size_of((arguments, result))
        if arguments in self.results or size > self._limit // _LARGEST_SHARE:
            return
        # In this order, so that nothing is kept whose size is not counted.
        self._sizes.append((arguments, size))
        self._size += size
        self.results[arguments] = result
        while self._size > self._limit:
            try:
                oldest, freed = self._sizes.popleft()
            except IndexError:  # another thread has dropped the rest
                return
            self.results.pop(oldest, None)
            self._size -= freed

    def clear(self) -> None:
        self.results.clear()
        self._sizes.clear()
        self._size = 0


def bounded_cache(megabytes: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that keeps up to so many megabytes of a function's results, and of their arguments.

    The arguments are positional and hashable. Equal arguments have equal results.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        cache = BoundedCache(megabytes)
        results = cache.results

        @wraps(function)
        def call(*arguments: Any) -> R:
            try:
                known: R = results[arguments]
                return known
            except KeyError:
                pass
            result = function(*arguments)
            cache.keep(arguments, result)
            return result

        return call

    return decorate


def clear_caches() -> None:
    """Drop the plans that are kept for repeated calls. They take up to 64 MB.

    Compiled CUDA kernels stay, since each takes up to a second to compile.
    """
    for cache in _caches:
        cache.clear()


def _size_of(value: Any) -> int:
    """Return about how many bytes a value takes, with all it holds. A class with ``__sizeof__`` says that itself."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is tuple or kind is list:  # most are, of ints
            held = item
        else:
            total += getsizeof(item)
            if callable(item) or "__sizeof__" in vars(kind):
                continue
            held = item if isinstance(item, tuple) else list(getattr(item, "__dict__", {}).values())
        total += _CONTAINER_BYTES + _INT_BYTES * len(held)
        waiting += [one for one in held if type(one) is not int or not -_WORD <= one < _WORD]
    return total
