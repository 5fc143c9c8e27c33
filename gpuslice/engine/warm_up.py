"""Kernels before they are needed: ``warm_up`` compiles what a call needs, or all kernels of some widths."""

from collections import abc
from typing import Any

from gpuslice.engine.plan import KERNELS
from gpuslice.errors import describe, prefixes_errors

WIDTHS = tuple(sorted({kernel.width for kernel in KERNELS}))


@prefixes_errors("warm_up")
def warm_up(
    call: abc.Callable[..., object] | None = None,
    /,
    *arguments: Any,
    widths: abc.Iterable[int] | None = None,
    progress: abc.Callable[[int, int], object] | None = None,
    **named: Any,
) -> list[str]:
    """Compile the CUDA kernels that a call needs, or all of some widths, before they are needed.

    A kernel is compiled when it is first used, which takes up to a second, and cannot be done while a CUDA graph is
    captured. This function compiles several at once, in threads. CuPy keeps the results on disk, so that later
    processes only load them.

    Parameters
    ----------
    call : callable, optional
        A function of gpuslice, or ``run`` of a `gpuslice.onnx.Graph`. It is called, but nothing is copied on CUDA: its
        result is dropped, and arrays of ``out=`` keep their items.
    *arguments, **named
        The arguments of ``call``, with at least one CuPy array or CUDA tensor. Kernels depend on the shapes, strides,
        dtypes and alignments of arrays. NumPy arrays among them are copied as usual.
    widths : iterable of int, optional
        In place of a call: compile all kernels for items of so many bytes, for the current device. 1, 2, 4, 8 and 16
        are possible; without a call, the default is all. Items are moved by wider kernels too if their number and
        alignment allow it: float32 by those of 4, 8 and 16 bytes.
    progress : callable, optional
        Called after each kernel with the number of kernels that are ready and the number of all.

    Returns
    -------
    list of str
        The kernels that are ready now, by their names in a `Trace`, such as ``rows<4, -1>``. Empty if the device uses
        no kernels, see docs/gpu.md.

    Raises
    ------
    ImportError
        CuPy is not installed.
    RuntimeError
        There is no CUDA device, or a kernel cannot be compiled.
    TypeError
        ``call`` is not callable, it is combined with ``widths``, or ``widths`` is not iterable.
    ValueError
        No argument is a CuPy array or a CUDA tensor, or there are no kernels of such a width. Or what ``call`` raises.

    Notes
    -----
    Not an operator. The arrays that the call would return are allocated and dropped.

    Examples
    --------
    >>> import gpuslice as gs
    >>> gs.warm_up(gs.slice, x, [-1], [-9], steps=[-1])  # doctest: +SKIP
    ['rows<4, -1>']
    >>> names = gs.warm_up(widths=[1, 2])  # doctest: +SKIP
    """
    if call is not None and widths is not None:
        raise TypeError("widths cannot be combined with a call")
    if call is None and (arguments or named):
        raise TypeError("arguments need a call: warm_up(function, *arguments)")
    if call is not None and not callable(call):
        raise TypeError(f"call must be a function of gpuslice, such as gpuslice.slice; got {describe(call)}")
    chosen = WIDTHS if widths is None else _checked(widths)
    try:
        from gpuslice.engine import cuda
    except ImportError as error:
        raise ImportError("warm_up needs CuPy and an NVIDIA GPU: pip install 'gpuslice[cuda13]'") from error
    if not cuda.devices():
        raise RuntimeError("warm_up needs an NVIDIA GPU and its driver; CuPy finds none")
    if call is None:
        return cuda.compile_widths(chosen, progress)
    if not any(map(cuda.has_array, (*arguments, *named.values()))):
        raise ValueError("an argument of the call must be a CuPy array or a CUDA tensor; got none")
    return cuda.compile_for(lambda: call(*arguments, **named), progress)


def _checked(widths: abc.Iterable[int]) -> tuple[int, ...]:
    if not isinstance(widths, abc.Iterable):
        raise TypeError(f"widths must be an iterable of ints; got {describe(widths)}")
    chosen = tuple(widths)
    for width in chosen:
        if width not in WIDTHS:
            raise ValueError(f"widths must be among {', '.join(map(str, WIDTHS))}; got {describe(width)}")
    return chosen
