"""``gpuslice run``: a model on files of arrays."""

import time
from collections import abc
from typing import Any

from gpuslice import devices
from gpuslice.cli.files import read_array, read_arrays, write_arrays
from gpuslice.cli.results import cells_of, named_arrays, split_word, table
from gpuslice.engine import Trace, trace
from gpuslice.onnx import Graph, load_model

_HEADER: tuple[str, ...] = ("node", "operator", "output", "shape", "dtype", "device")


def run_model(model: str, words: abc.Sequence[str], output: str, device: str) -> None:
    """Run a model, write its outputs to an .npz file and print one line per node output.

    Parameters
    ----------
    model : str
        Path of an .onnx file.
    words : sequence of str
        The inputs, each as NAME=FILE.
    output : str
        Path of the .npz file.
    device : {"auto", "cpu", "cuda"}
    """
    if not output.endswith(".npz"):
        raise ValueError(f"{output!r}: must be an .npz file")
    name = ("CUDA" if devices.is_available("CUDA") else "CPU") if device == "auto" else device.upper()
    devices.check(name)
    graph = Graph(load_model(model))
    inputs = _read_inputs(graph, words, name)
    rows = [_HEADER]
    with trace() as collected:
        began = time.perf_counter()
        results = graph.run(inputs, observe=lambda *row: rows.append((*row[:3], *cells_of(row[3]))))
        devices.synchronize(name)
        seconds = time.perf_counter() - began
    write_arrays(output, named_arrays(zip(results, devices.to_host(results.values()), strict=True)))
    print(table(rows))
    print(f"outputs: {_summary(collected)}, {seconds * 1e3:.3f} ms -> {output}")


def _read_inputs(graph: Graph, words: abc.Sequence[str], device: str) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, files in map(split_word, words):
        if name in inputs:
            raise ValueError(f"input {name!r} must be given once; got it twice")
        declared = graph.declared.get(name)
        if declared is None:
            raise ValueError(f"the model has no input {name!r}; it has {', '.join(graph.inputs) or 'none'}")
        read = read_arrays if declared.is_sequence else read_array
        inputs[name] = devices.place(read(files, declared.dtype or None), device)
    return inputs


def _summary(collected: Trace) -> str:
    count, written = len(collected.launches), sum(launch.bytes_written for launch in collected.launches)
    return f"{count} launch{'' if count == 1 else 'es'}, {written} bytes"
