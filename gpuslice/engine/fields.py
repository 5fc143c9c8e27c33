"""Structured dtypes whose fields do not cover the whole item, such as that of ``x[["a", "c"]]``."""

from collections import abc
from functools import lru_cache

from gpuslice.dtypes import DType
from gpuslice.engine.views import View
from gpuslice.rules import Region


def field_by_field(pairs: abc.Iterable[tuple[View, View]]) -> abc.Iterator[tuple[View, View]]:
    """Yield the pairs to copy so that nothing between the fields of a target is written: other views may own it."""
    for source, target in pairs:
        if has_gaps(target.dtype):
            yield from field_by_field((_field(source, name), _field(target, name)) for name in target.dtype.names)
        else:
            yield source, target


def has_gaps(dtype: DType) -> bool:
    """Return whether an item has bytes that belong to none of its fields. Dtypes without fields have none."""
    return getattr(dtype, "fields", None) is not None and not _is_covered(dtype)


def _field(view: View, name: str) -> View:
    """Return one field of a structured view. A field that is an array adds its axes."""
    field = view.array[name]
    inner = field.shape[len(view.shape) :]
    first, step, shape = view.region
    region = Region((*first, *(0 for _ in inner)), (*step, *(1 for _ in inner)), (*shape, *inner))
    return View(field, region, view.library)


@lru_cache(maxsize=256)
def _is_covered(dtype: DType) -> bool:
    return _runs(dtype) == [(0, dtype.itemsize)]


def _runs(dtype: DType) -> list[tuple[int, int]]:
    """Return the ranges of an item's bytes that belong to a field, in order and merged."""
    if dtype.subdtype is not None:
        base = dtype.base
        if _is_covered(base):
            return [(0, dtype.itemsize)]
        starts = range(0, dtype.itemsize, base.itemsize)
        return _merged((start + begin, start + end) for start in starts for begin, end in _runs(base))
    if dtype.fields is None:
        return [(0, dtype.itemsize)]
    # By names, since `fields` lists a field with a title twice.
    fields = (dtype.fields[name][:2] for name in dtype.names)
    return _merged((offset + begin, offset + end) for field, offset in fields for begin, end in _runs(field))


def _merged(ranges: abc.Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged
