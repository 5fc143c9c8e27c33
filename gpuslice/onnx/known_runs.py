"""Runs of a node or graph that were made before: with inputs of the same kinds, they are a few prepared copies."""

from collections import abc
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gpuslice.caches import BoundedCache
from gpuslice.engine import TOO_LARGE, Prepared, View, is_tracing, prepared_for
from gpuslice.libraries import Array, bridge_of
from gpuslice.onnx.evaluate import finish
from gpuslice.sequence import Sequence, items_of

# Bounds that are inputs are part of what is known of a run, if they are few.
_MOST_BOUND_BYTES = 512

_cache = BoundedCache(8)

Key = tuple[Any, ...]
# Name, and whether it is a constant.
_Source = tuple[str | int, bool]


class _Copies(NamedTuple):
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


class _Run(NamedTuple):
    """A run of several copies, or with outputs that are not all tensors.

    Attributes
    ----------
    copies : list of _Copies
    outputs : list of (str or None, int)
        For a sequence its dtype; the number of tensors, 0 for an output that is not wanted.
    tensors : int
        The number of all tensors.
    """

    copies: list[_Copies]
    outputs: list[tuple[str | None, int]]
    tensors: int


class KnownRuns:
    """What is known of the runs of one node or graph. Each run looks it up, so `key` and `run` are written for speed.

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
        self._fixed: dict[int, _Source | None] = {id(array): (name, True) for name, array in constants.items()}

    def key(self, inputs: abc.Iterable[tuple[str | int, Any]]) -> Key | None:
        """Return the key of a run with inputs by name.

        Return None if an input is not a NumPy array or a plain tensor, or its bounds are many. Bounds may also be a
        list of exact ints.
        """
        if is_tracing():
            return None
        bounds = self._bounds
        key: list[Any] = [self._of]
        for name, value in inputs:
            kind = type(value)
            if kind is np.ndarray:
                if name not in bounds:
                    key += name, value.shape, value.strides, value.dtype
                elif value.nbytes <= _MOST_BOUND_BYTES:
                    key += name, value.dtype, value.shape, value.tobytes()
                else:
                    return None
            elif (kind is list or kind is tuple) and name in bounds:
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

    def run(self, key: Key | None, inputs: Any) -> list[Any] | None:
        """Return the outputs of a run; None if it is not known, or if memory is short, as the run in full says."""
        known: _Copies | _Run | None = _cache.results.get(key)  # type: ignore[arg-type]
        if known is None:
            return None
        try:
            if isinstance(known, _Copies):
                return self._results(known, inputs)
            tensors: list[Any] = [None] * known.tensors
            for copies in known.copies:
                for place, result in zip(copies.places, self._results(copies, inputs), strict=True):
                    tensors[place] = result
        except TOO_LARGE:
            return None
        waiting, outputs = iter(tensors), []
        for dtype, count in known.outputs:
            if dtype is None:
                outputs.append(next(waiting) if count else None)
            else:
                outputs.append(Sequence.of_items(list(islice(waiting, count)), dtype))
        return outputs

    def _results(self, copies: _Copies, inputs: Any) -> list[Array]:
        return copies.prepared.fresh((self._constants if copies.is_constant else inputs)[copies.name])

    def finish(self, key: Key | None, inputs: Any, results: abc.Sequence[Any]) -> list[Any]:
        """Return the outputs of a run, which are not yet copied, and keep the run if that is possible.

        ``inputs`` is a mapping by name, or for a node a sequence.
        """
        return (self.run(key, inputs) if self._learn(key, inputs, results) else None) or finish(results)

    def _learn(self, key: Key | None, inputs: Any, results: abc.Iterable[Any]) -> bool:
        """Keep a run whose outputs are regions of constants and of inputs that are not bounds; return whether it is."""
        sources = None if key is None else self._sources(inputs)
        if sources is None:
            return False
        outputs: list[tuple[str | None, int]] = []
        members: dict[_Source, list[tuple[int, View]]] = {}
        tensors = 0
        for value in results:
            items = items_of(value) if isinstance(value, Sequence) else [] if value is None else [value]
            outputs.append((value.dtype if isinstance(value, Sequence) else None, len(items)))
            for item in items:
                if type(item) is not View:
                    return False
                source = sources.get(id(item.array))
                if source is None:
                    return False
                members.setdefault(source, []).append((tensors, item))
                tensors += 1
        copies = []
        for source, taken in members.items():
            prepared = prepared_for(taken[0][1].array, [view for _, view in taken], keep=False)
            if prepared is None:
                return False
            copies.append(_Copies(*source, prepared, tuple([place for place, _ in taken])))
        # The results of one copy are the outputs, in order.
        is_plain = len(copies) == 1 and all(output == (None, 1) for output in outputs)
        _cache.keep(key, copies[0] if is_plain else _Run(copies, outputs, tensors))  # type: ignore[arg-type]
        return True

    def _sources(self, inputs: Any) -> dict[int, _Source | None] | None:
        """Return what outputs may be regions of, by the array's id; None if an input has references to objects.

        An array that is there twice is none of them: in another run it may be two arrays. Nor are bounds, whose strides
        are not in the key.
        """
        sources = self._fixed.copy()
        for name, value in inputs.items() if isinstance(inputs, dict) else enumerate(inputs):
            is_numpy = type(value) is np.ndarray
            if is_numpy and value.dtype.hasobject:
                return None
            if name not in self._bounds and (is_numpy or bridge_of(value) is not None):
                sources[id(value)] = None if id(value) in sources else (name, False)
        return sources
