"""Prepared copies of arrays that have a bridge: by NumPy's or CuPy's prepared copies, or by their library."""

from collections import abc
from types import EllipsisType

from gpuslice.dtypes import DType
from gpuslice.engine import choice, prepared, prepared_joins
from gpuslice.engine.generic import steps_to
from gpuslice.engine.joined import Joined, Lazy
from gpuslice.engine.lowering import by_their_library, memory_of, torch_cuda
from gpuslice.engine.memory import aligned_empty
from gpuslice.engine.prepared import EXECUTORS, Prepared
from gpuslice.engine.prepared_joins import JoinByHost, PreparedJoin
from gpuslice.engine.prepared_regions import ByKernels
from gpuslice.engine.views import View
from gpuslice.libraries import NUMPY, Array, Bridge, Library, bridge_of
from gpuslice.rules import Region


class ByBridge:
    """Regions of a plain array of a library that has a bridge, with the same methods as `ByNumPy`.

    Parameters
    ----------
    bridge : Bridge
    inner : Prepared
        How the regions of a NumPy array over the same memory are copied.
    regions : sequence of Region
    by_library : (bool, bool)
        Whether the library itself copies, to new arrays and to outputs.
    """

    __slots__ = ("_aligned", "_bridge", "_copies", "_inner", "_steps", "_writes", "shapes")

    shapes: list[tuple[int, ...]]

    def __init__(
        self, bridge: Bridge, inner: Prepared, regions: abc.Sequence[Region], by_library: tuple[bool, bool]
    ) -> None:
        self.shapes = [region.shape for region in regions]
        self._bridge = bridge
        self._inner = inner
        self._copies, self._writes = by_library
        self._aligned = type(inner) is ByKernels
        self._steps = [steps_to(region) for region in regions] if any(by_library) else []

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]:
        """Return a dense copy of each region of an array."""
        bridge = self._bridge
        if self._copies:
            return [self._taken(array, *steps, copied=True) for steps in self._steps]
        dtype, copied = array.dtype, self._copied(bridge.to_numpy(array))
        return [bridge.from_numpy(one, dtype) for one in copied]

    def fresh_one(self, array: Array) -> Array:
        """Return a dense copy of the only region."""
        bridge = self._bridge
        if self._copies:
            return self._taken(array, *self._steps[0], copied=True)
        source = bridge.to_numpy(array)
        copied = self._copied(source)[0] if self._aligned else self._inner.fresh_one(source)
        return bridge.from_numpy(copied, array.dtype)

    def into_one(self, array: Array, target: Array) -> None:
        """Copy the only region of an array into a target."""
        self.into(array, (target,))

    def into(self, array: Array, targets: abc.Sequence[Array]) -> None:
        """Copy each region of an array into its target."""
        bridge = self._bridge
        if self._writes:
            for steps, target in zip(self._steps, targets, strict=True):
                target[...] = self._taken(array, *steps, copied=False)
            return
        self._inner.into(bridge.to_numpy(array), [bridge.to_numpy(target) for target in targets])
        bridge.were_written(targets)

    def _copied(self, source: Array) -> list[Array]:
        if not self._aligned:
            return self._inner.fresh(source)
        targets = [aligned_empty(shape, source.dtype) for shape in self.shapes]
        self._inner.into(source, targets)
        return targets

    def _taken(
        self, array: Array, index: tuple[slice | EllipsisType, ...], axes: tuple[int, ...], *, copied: bool
    ) -> Array:
        view = array[index]
        taken = self._bridge.flip(view, axes) if axes else view
        return self._bridge.fresh(taken, is_view=not axes) if copied else taken


class OnCuda:
    """Regions of a plain CUDA tensor, with the same methods. New tensors are from PyTorch's allocator.

    Parameters
    ----------
    library : Library
        PyTorch.
    bridge : Bridge
    inner : Prepared
        How the regions of a CuPy array over the same memory are copied.
    """

    __slots__ = ("_bridge", "_inner", "_library", "shapes")

    shapes: abc.Sequence[tuple[int, ...]]

    def __init__(self, library: Library, bridge: Bridge, inner: Prepared) -> None:
        self.shapes = inner.shapes
        self._library = library
        self._bridge = bridge
        self._inner = inner

    def fresh(self, array: Array, *, one_block: bool = False) -> list[Array]:
        """Return a dense copy of each region of an array. PyTorch's allocator makes one block needless."""
        targets = [self._library.empty(shape, array.dtype, array) for shape in self.shapes]
        self._copy(array, targets)
        return targets

    def fresh_one(self, array: Array) -> Array:
        """Return a dense copy of the only region."""
        return self.fresh(array)[0]

    def into_one(self, array: Array, target: Array) -> None:
        """Copy the only region of an array into a target."""
        self.into(array, (target,))

    def into(self, array: Array, targets: abc.Sequence[Array]) -> None:
        """Copy each region of an array into its target."""
        self._copy(array, targets)
        self._bridge.were_written(targets)

    def _copy(self, array: Array, targets: abc.Sequence[Array]) -> None:
        cuda = torch_cuda()
        source = cuda.to_cupy(array)
        with cuda.on_current_streams([source.data.device_id]):
            self._inner.into(source, [cuda.to_cupy(target) for target in targets])


def prepared_for(
    array: Array, values: abc.Sequence[Lazy], *, keep: bool = True, dropped: int | None = None
) -> Prepared | None:
    """Return how values that are regions of one array are copied; None if they are others, many or unusual.

    The parameters are those of `prepared.prepared_for`. An axis is dropped of arrays that executors copy only.
    """
    bridge = None if type(array) in EXECUTORS else bridge_of(array)
    if bridge is None:
        return prepared.prepared_for(array, values, keep=keep, dropped=dropped)
    source, library = memory_of(bridge, array)
    if source is None or dropped is not None:
        return None
    views: list[Lazy] = []
    for value in values:
        if type(value) is not View or value.array is not array:
            return None
        views.append(View(source, value.region, library))
    inner = prepared.prepared_for(source, views, keep=keep)
    if inner is None:
        return None
    if not bridge.is_on_host(array):
        return OnCuda(values[0].library, bridge, inner)
    by_library = by_their_library(values, views, written=False), by_their_library(values, views, written=True)
    return ByBridge(bridge, inner, [view.region for view in views], by_library)  # type: ignore[union-attr]


class JoinByBridge:
    """Plain arrays of a library that has a bridge side by side, with the same methods as `JoinByHost`.

    Parameters
    ----------
    bridge : Bridge
    inner : JoinByHost
        How NumPy arrays over the same memory are joined.
    dtype : dtype
        Of the library.
    """

    __slots__ = ("_bridge", "_dtype", "_inner", "shape")

    shape: tuple[int, ...]

    def __init__(self, bridge: Bridge, inner: JoinByHost, dtype: DType) -> None:
        self.shape = inner.shape
        self._bridge = bridge
        self._inner = inner
        self._dtype = dtype

    def fresh(self, arrays: abc.Sequence[Array]) -> Array:
        """Return a new array of the arrays side by side."""
        target = aligned_empty(self.shape, self._inner.dtype)
        self._inner.into(list(map(self._bridge.to_numpy, arrays)), target)
        return self._bridge.from_numpy(target, self._dtype)

    def into(self, arrays: abc.Sequence[Array], target: Array) -> None:
        """Copy arrays side by side into a target."""
        bridge = self._bridge
        self._inner.into(list(map(bridge.to_numpy, arrays)), bridge.to_numpy(target))
        bridge.were_written([target])


class JoinByLibrary:
    """Arrays side by side as their library joins them, with the same methods as `JoinByHost`."""

    __slots__ = ("_arguments", "_bridge", "shape")

    shape: tuple[int, ...]

    def __init__(self, bridge: Bridge, shape: tuple[int, ...], axis: int, *, new_axis: bool) -> None:
        self.shape = shape
        self._bridge = bridge
        self._arguments = (axis, new_axis)

    def fresh(self, arrays: abc.Sequence[Array]) -> Array:
        """Return a new array of the arrays side by side."""
        return self._bridge.join(arrays, *self._arguments)

    def into(self, arrays: abc.Sequence[Array], target: Array) -> None:
        """Copy arrays side by side into a target."""
        self._bridge.join(arrays, *self._arguments, target)


def prepared_join(arrays: abc.Sequence[Array], joined: Joined, *, new_axis: bool) -> PreparedJoin | None:
    """Return how a join of arrays is copied, of which ``joined`` is the result; None if it is unusual."""
    bridge = joined.library.bridge
    if bridge is None:
        if any(array.dtype != joined.dtype for array in arrays):  # bytes that were decoded to be joined to text
            return None
        return prepared_joins.prepared_join(joined, new_axis=new_axis)
    sources = [memory_of(bridge, part.array) for part in joined.parts]
    if any(source is None or library is not NUMPY for source, library in sources):
        return None
    on_host = Joined.of_numpy([source for source, _ in sources], joined.axis)
    if choice.torch_joins_faster(on_host, threads=bridge.threads(arrays[0].dtype)):
        return JoinByLibrary(bridge, joined.shape, joined.axis, new_axis=new_axis)
    inner = prepared_joins.prepared_join(on_host, new_axis=new_axis)
    return None if inner is None else JoinByBridge(bridge, inner, arrays[0].dtype)
