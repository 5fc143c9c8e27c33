"""Runs of a graph that were made before: with inputs of the same kinds, the whole graph is a few prepared copies."""

from collections import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuslice.caches import BoundedCache
from gpuslice.engine import Prepared, View, is_tracing, prepared_for
from gpuslice.libraries import Array
from gpuslice.onnx.graph_node import GraphNode
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
    name : str
        Of an input or a constant.
    prepared : Prepared
    places : tuple of int
        Where the results go, among all tensors of all outputs.
    """

    name: str
    prepared: Prepared
    places: tuple[int, ...]


@dataclass(frozen=True)
class _Run:
    """A run: its copies, and how the tensors become outputs.

    Attributes
    ----------
    copies : list of _Copies
    outputs : list of (str, str or None, int)
        Name; for a sequence its dtype; the number of tensors.
    tensors : int
        The number of all tensors.
    """

    copies: list[_Copies]
    outputs: list[tuple[str, str | None, int]]
    tensors: int


class KnownRuns:
    """What is known of the runs of one graph.

    Parameters
    ----------
    nodes : sequence of GraphNode
    constants : dict of str to array
    """

    def __init__(self, nodes: abc.Sequence[GraphNode], constants: abc.Mapping[str, Array]) -> None:
        self._graph = object()  # stands for the graph in the keys, and keeps nothing alive
        self._constants = constants
        self._bounds = _names_read(nodes)

    def key(self, inputs: abc.Mapping[str, Any]) -> Key | None:
        """Return the key of a run; None if an input is not a NumPy array of plain items, or its bounds are many."""
        if type(inputs) is not dict or is_tracing():
            return None
        key: list[Any] = [self._graph]
        for name, value in inputs.items():
            if type(value) is not np.ndarray or value.dtype.hasobject:
                return None
            key += name, value.shape, value.strides, value.dtype
            if name in self._bounds:
                if value.nbytes > _MOST_BOUND_BYTES:
                    return None
                key.append(value.tobytes())
        return tuple(key)

    def run(self, key: Key | None, inputs: abc.Mapping[str, Any]) -> list[tuple[str, Any]] | None:
        """Return the outputs of a run by name; None if it is not known."""
        known: _Run | None = _cache.results.get(key)  # type: ignore[arg-type]
        if known is None:
            return None
        tensors: list[Any] = [None] * known.tensors
        try:
            for copies in known.copies:
                array = inputs[copies.name] if copies.name in inputs else self._constants[copies.name]
                for place, result in zip(copies.places, copies.prepared.fresh(array), strict=True):
                    tensors[place] = result
        except MemoryError:  # the run in full says what was wanted
            return None
        waiting, outputs = iter(tensors), []
        for name, dtype, count in known.outputs:
            value = next(waiting) if dtype is None else Sequence.of_items([next(waiting) for _ in range(count)], dtype)
            outputs.append((name, value))
        return outputs

    def learn(self, key: Key | None, inputs: abc.Mapping[str, Any], results: abc.Sequence[tuple[str, Any]]) -> None:
        """Keep a run whose outputs, not yet copied, are regions of inputs and constants."""
        if key is None:
            return
        arrays = {**self._constants, **inputs}
        names = {id(array): name for name, array in arrays.items()}
        if len(names) < len(arrays):  # one array has two names, and another run may have two arrays
            return
        outputs: list[tuple[str, str | None, int]] = []
        by_array: dict[str, list[tuple[int, View]]] = {}
        tensors = 0
        for output, value in results:
            items = list(items_of(value)) if isinstance(value, Sequence) else [value]
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
            copies.append(_Copies(name, prepared, tuple([place for place, _ in members])))
        _cache.keep(key, _Run(copies, outputs, tensors))


def _names_read(nodes: abc.Sequence[GraphNode]) -> frozenset[str]:
    """Return the names of values whose items say what a node does, and of those that they are computed from."""
    read: set[str] = set()
    for node in reversed(nodes):
        for position, name in enumerate(node.inputs):
            entry = node.input(position)
            # The sizes of Split-1 have the type of its data.
            is_bound = entry is not None and (entry.kind == "index" or entry.name == "split")
            if is_bound or not read.isdisjoint(node.outputs):
                read.add(name)
    return frozenset(read)
