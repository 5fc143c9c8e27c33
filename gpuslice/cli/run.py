"""``gpuslice run``: a model on files of arrays."""

from collections import abc
from typing import Any

from gpuslice import devices
from gpuslice.cli.arguments import split_word
from gpuslice.cli.copies import Copies
from gpuslice.cli.reading import read_array, read_arrays
from gpuslice.cli.replacing import check_target
from gpuslice.cli.results import cells_of, named_arrays, table
from gpuslice.cli.text import printable, show
from gpuslice.cli.writing import check_names, write_arrays
from gpuslice.engine import Trace, trace
from gpuslice.errors import listed
from gpuslice.onnx import Graph, load_model, parts
from gpuslice.onnx.model import UnsupportedNodes

_HEADER: tuple[str, ...] = ("node", "operator", "output", "shape", "dtype", "device")
_MOST_LISTED = 10


def run_model(model: str, words: abc.Sequence[str], output: str, device: str, part: int | None) -> None:
    """Run a model, write its outputs to an .npz file and print one line per node output.

    Parameters
    ----------
    model : str
        Path of an .onnx file.
    words : sequence of str
        The inputs, each as NAME=FILE. The element type may follow the name, as in ``x:bfloat16``.
    output : str
        Path of the .npz file.
    device : {"auto", "cpu", "cuda"}
    part : int or None
        Which of the sub-models that can run, from 1; None for the model.
    """
    if not output.endswith(".npz"):
        raise ValueError(f"{output!r}: must be an .npz file, which holds all outputs by name")
    check_target(output)
    name = ("CUDA" if devices.is_available("CUDA") else "CPU") if device == "auto" else device.upper()
    devices.check(name)
    graph = _graph(load_model(model), part)
    check_names([name for name, declared in graph.outputs.items() if not declared.is_sequence])
    inputs = _read_inputs(graph, words, name)
    rows = [_HEADER]
    copies = Copies(device=name)
    with trace() as collected:
        results = dict(graph.evaluate(inputs, observe=lambda *row: rows.append((*row[:3], *cells_of(row[3])))))
        write_arrays(output, named_arrays(results.items()), copies)
    show(table(rows))
    show(f"outputs: {_summary(collected)}, {copies.seconds * 1e3:.3f} ms -> {printable(output)}")


def _graph(model: Any, part: int | None) -> Graph:
    if part is None:
        try:
            return Graph(model)
        except UnsupportedNodes as error:
            raise ValueError(f"{error}. {_listed(parts(model))}") from None
    found = parts(model)
    if not 1 <= part <= len(found):
        allowed = f"be in [1, {len(found)}]" if found else "not be given"
        raise ValueError(f"--part must {allowed}; got {part}. {_listed(found)}")
    return Graph(found[part - 1])


def _listed(found: list[Any]) -> str:
    """Return what the parts of a model are, for the numbers of ``--part``."""
    if not found:
        return "No part of the model can run"
    lines = [
        f"{number}: nodes {len(part.graph.node)}, from {_first_node(part)} with input "
        f"{_few(', ', [repr(entry.name) for entry in part.graph.input])}"
        for number, part in enumerate(found, 1)
    ]
    return f"Parts that can run: {len(found)} ({_few('; ', lines)})"


def _few(separator: str, words: list[str]) -> str:
    return separator.join(words[:_MOST_LISTED] + ["..."] * (len(words) > _MOST_LISTED))


def _first_node(part: Any) -> str:
    node = next(node for node in part.graph.node if node.op_type != "Constant")
    return f"{node.op_type} {node.name!r}" if node.name else f"{node.op_type} with output {node.output[0]!r}"


def _split_type(name: str, declared: abc.Container[str]) -> tuple[str, str]:
    """Return an input's name and the element type that may follow it. Names may hold colons too."""
    bare, _, dtype = name.rpartition(":")
    typed = name not in declared and bare in declared and dtype.isidentifier()
    return (bare, dtype) if typed else (name, "")


def _read_inputs(graph: Graph, words: abc.Sequence[str], device: str) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    form = f"-i must be NAME=FILE; the inputs of the model are {listed(graph.inputs) or 'none'}"
    for word in words:
        given, files = split_word(word, form, lambda name: _split_type(name, graph.declared)[0] in graph.declared)
        name, dtype = _split_type(given, graph.declared)
        if name in inputs:
            raise ValueError(f"input {name!r} must be given once; got it twice")
        declared = graph.declared.get(name)
        if declared is None:
            raise ValueError(f"the model has no input {name!r}; it has {listed(graph.inputs) or 'none'}")
        read = read_arrays if declared.is_sequence else read_array
        inputs[name] = devices.place(read(files, dtype or declared.dtype or None), device)
    return inputs


def _summary(collected: Trace) -> str:
    count, written = len(collected.launches), sum(launch.bytes_written for launch in collected.launches)
    return f"{count} launch{'' if count == 1 else 'es'}, {written} bytes"
