"""Runs of a node or graph that were made before: with inputs of the same kinds, they are a few prepared copies."""

from collections import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuslice.caches import BoundedCache
from gpuslice.engine import Prepared, View, is_tracing, prepared_for
from gpuslice.libraries import Array, bridge_of
from gpuslice.sequence import Sequence, items_of

# Bounds that are inputs are part of what is known of a run, if they are few.
_MOST_BOUND_BYTES = 512

_cache = BoundedCache(8)

Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Copies:
    """The copies of one array.

    Attributes
    ----------
    name : str or int
        Of an input or a constant; for a node the input's position.
    is_constant : bool
    prepared : Prepared
    places : tuple of int
        Where the results go, among all tensors of all outputs.
    """

    name: str | int
    is_constant: bool
    prepared: Prepared
    places: tuple[int, ...]


@dataclass(frozen=True)
class _Run:
    """A run: its copies, and how the tensors become outputs.

    Attributes
    ----------
    copies : list of _Copies
    outputs : list of (str, str or None, int)
        Name; for a sequence its dtype; the number of tensors, 0 for an output that is not wanted.
    tensors : int
        The number of all tensors.
    """

    copies: list[_Copies]
    outputs: list[tuple[str, str | None, int]]
    tensors: int


class KnownRuns:
    """What is known of the runs of one node or graph.

    Parameters
    ----------
    bounds : set of str or int
        The inputs whose items say what is done, by name, or for a node by position.
    constants : dict of str to array
    """

    def __init__(self, bounds: abc.Set[str | int], constants: abc.Mapping[Any, Array]) -> None:
        self._of = object()  # stands for the node or graph in the keys, and keeps nothing alive
        self._bounds = bounds
        self._constants = constants

    def key(self, inputs: abc.Iterable[tuple[str | int, Any]]) -> Key | None:
        """Return the key of a run with inputs by name.

        Return None if an input is not a NumPy array of plain items or a plain tensor, or its bounds are many. Bounds
        may also be a list of exact ints.
        """
        if is_tracing():
            return None
        key: list[Any] = [self._of]
        for name, value in inputs:
            kind = type(value)
            if kind is np.ndarray and not value.dtype.hasobject:
                key += name, value.shape, value.strides, value.dtype
                if name in self._bounds:
                    if value.nbytes > _MOST_BOUND_BYTES:
                        return None
                    key.append(value.tobytes())
            elif (kind is list or kind is tuple) and name in self._bounds:
                for number in value:
                    if type(number) is not int:
                        return None
                key += name, tuple(value)
            elif value is not None:
                bridge = bridge_of(value)
                of = None if bridge is None or name in self._bounds else bridge.kind(value)
                if of is None:
                    return None
                key += name, of
        return tuple(key)

    def run(self, key: Key | None, inputs: Any) -> list[tuple[str, Any]] | None:
        """Return the outputs of a run by name; None if it is not known."""
        known: _Run | None = _cache.results.get(key)  # type: ignore[arg-type]
        if known is None:
            return None
        tensors: list[Any] = [None] * known.tensors
        try:
            for copies in known.copies:
                array = (self._constants if copies.is_constant else inputs)[copies.name]
                for place, result in zip(copies.places, copies.prepared.fresh(array), strict=True):
                    tensors[place] = result
        except MemoryError:  # the run in full says what was wanted
            return None
        waiting, outputs = iter(tensors), []
        for name, dtype, count in known.outputs:
            if dtype is None:
                value = next(waiting) if count else None
            else:
                value = Sequence.of_items([next(waiting) for _ in range(count)], dtype)
            outputs.append((name, value))
        return outputs

    def learn(
        self, key: Key | None, inputs: abc.Iterable[tuple[Any, Any]], results: abc.Iterable[tuple[str, Any]]
    ) -> None:
        """Keep a run whose outputs, not yet copied, are regions of inputs and constants."""
        if key is None:
            return
        given = {name: value for name, value in inputs if type(value) is np.ndarray or bridge_of(value) is not None}
        arrays = {**self._constants, **given}
        names = {id(array): name for name, array in arrays.items()}
        if len(names) < len(arrays):  # one array has two names, and another run may have two arrays
            return
        outputs: list[tuple[str, str | None, int]] = []
        by_array: dict[Any, list[tuple[int, View]]] = {}
        tensors = 0
        for output, value in results:
            items = items_of(value) if isinstance(value, Sequence) else [] if value is None else [value]
            outputs.append((output, value.dtype if isinstance(value, Sequence) else None, len(items)))
            for item in items:
                if type(item) is not View or id(item.array) not in names:
                    return
                by_array.setdefault(names[id(item.array)], []).append((tensors, item))
                tensors += 1
        copies = []
        for name, members in by_array.items():
            prepared = prepared_for(members[0][1].array, [view for _, view in members])
            if prepared is None:
                return
            copies.append(_Copies(name, name not in given, prepared, tuple([place for place, _ in members])))
        _cache.keep(key, _Run(copies, outputs, tensors))
