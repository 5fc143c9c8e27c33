"""``python -m bench models``: the nodes and parts of real models beside onnxruntime and onnx.reference."""

import argparse
import random
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from bench.model_files import nodes_of, read
from bench.model_nodes import Piece, bounds_of, pieces
from bench.model_runs import session
from bench.progress import progress
from gpuslice.onnx import Graph, reference_ops, run_node

NODE, GRAPH, OPS = "run_node", "Graph", "reference_ops"
RUNTIME, RUNTIME_CONSTANT, REFERENCE, DENSE = "onnxruntime", "bounds constant", "onnx.reference", "made dense"
COPIES = "NumPy copies"
_SAMPLE, _LEAST_CALLS = 4e-4, 3  # seconds and calls of a sample, at least

Calls = dict[str, Callable[[], Any]]


@dataclass
class Row:
    """A node or a part: whose results differ from onnxruntime's, and the seconds of each call.

    Attributes
    ----------
    piece : Piece
    size : int
        Bytes of all outputs.
    wrong : list of str
    samples : dict of str to list of float
    """

    piece: Piece
    size: int
    wrong: list[str]
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """The median of each call."""
        return {name: median(found) for name, found in self.samples.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--models", metavar="FOLDER", type=Path, required=True, help="the wheels of bench/models.txt")
    parser.add_argument("--rounds", type=int, default=5, help="how often the calls of a node are timed, in turns")
    parser.add_argument("--passes", type=int, default=4, help="how often all nodes are gone through")
    parser.add_argument("--output", metavar="FILE", type=Path, help="a Markdown file for the tables, too")


def main(given: argparse.Namespace) -> None:
    """Print the tables: what is compared, how much of it is equal, and the times."""
    from bench.model_report import report

    packages, nodes, cut = distinct(given.models)
    work = [(piece, node_calls(piece)) for piece in nodes] + [(piece, part_calls(piece)) for piece in cut]
    rows = [compare(piece, calls) for piece, calls in work]
    began = time.perf_counter()
    # Each several times, since one may be slow for a while: its outputs are where the last ones of others have been.
    for turn in range(given.passes):
        for number, (row, (piece, calls)) in enumerate(zip(rows, work, strict=True), 1):
            progress(turn * len(work) + number, given.passes * len(work), piece.source, began)
            measure(row, calls, given.rounds)
    text = report(packages, rows[: len(nodes)], rows[len(nodes) :], given.passes * given.rounds)
    print(text)
    if given.output:
        given.output.write_text(text + "\n")


def distinct(folder: Path) -> tuple[dict[str, Counter[str]], list[Piece], list[Piece]]:
    """Return per package how much it has, and the distinct nodes and parts of all models in a folder's wheels."""
    packages: dict[str, Counter[str]] = {}
    nodes: dict[Any, Piece] = {}
    parts: dict[Any, Piece] = {}
    for file in read(folder):
        print(f"{file.package}, {file.path}", file=sys.stderr)
        found = pieces(file)
        counts = packages.setdefault(file.package, Counter())
        counts.update({"models": 1, "nodes": len(nodes_of(file.model.graph)), "nodes that ran": found.reached})
        for name, known, new in (("distinct nodes", nodes, found.nodes), ("distinct parts", parts, found.parts)):
            before = len(known)
            for piece in new:
                known.setdefault(piece.key(), piece)
            counts[name] += len(known) - before
    return packages, list(nodes.values()), list(parts.values())


def node_calls(piece: Piece) -> Calls:
    """Return the calls of a node that are compared, onnxruntime's first."""
    node, inputs, opset = piece.nodes[0], piece.inputs, piece.opset
    fixed = piece.with_constants(bounds_of(piece.model))
    by_inputs, by_constants, graph = session(piece.model), session(fixed.model), Graph(fixed.model)
    ours, theirs = (ReferenceEvaluator(piece.model, new_ops=ops).rt_nodes_[0].run for ops in (reference_ops(), None))
    return {
        RUNTIME: lambda: by_inputs.run(None, piece.feeds),
        RUNTIME_CONSTANT: lambda: by_constants.run(None, fixed.feeds),
        NODE: lambda: run_node(node, inputs, opset=opset),
        GRAPH: lambda: graph.run(fixed.feeds),
        OPS: lambda: ours(*inputs),
        REFERENCE: lambda: theirs(*inputs),
        DENSE: lambda: list(map(_dense, theirs(*inputs))),
        COPIES: _copies(by_inputs.run(None, piece.feeds)),
    }


def part_calls(piece: Piece) -> Calls:
    """Return the calls of a part that are compared, onnxruntime's first."""
    runtime, graph = session(piece.model), Graph(piece.model)
    return {
        RUNTIME: lambda: runtime.run(None, piece.feeds),
        GRAPH: lambda: graph.run(piece.feeds),
        COPIES: _copies(runtime.run(None, piece.feeds)),
    }


def compare(piece: Piece, calls: Calls) -> Row:
    """Return which calls give other results than the first one, by every bit, dtype and shape."""
    expected = calls[RUNTIME]()
    # Twice: the second time a call is known.
    wrong = [name for name, call in calls.items() if any(_bits(call()) != _bits(expected) for _ in range(2))]
    return Row(piece, sum(array.nbytes for array in _arrays(expected)), wrong)


def measure(row: Row, calls: Calls, rounds: int) -> None:
    """Time calls in turns. The order changes, since a call finds the caches as the one before it left them."""
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    once = {name: timer.timeit(_LEAST_CALLS) / _LEAST_CALLS for name, timer in timers.items()}
    numbers = {name: max(_LEAST_CALLS, int(_SAMPLE / seconds)) for name, seconds in once.items()}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            row.samples.setdefault(name, []).append(timers[name].timeit(numbers[name]) / numbers[name])


def _arrays(values: Iterable[Any]) -> list[Any]:
    return [item for value in values for item in ([value] if isinstance(value, np.ndarray) else value)]


def _bits(results: Any) -> list[Any]:
    """Return dtype, shape and bytes of all items of each result."""
    values = results.values() if isinstance(results, dict) else results
    return [[(item.dtype, item.shape, item.tobytes()) for item in _arrays([value])] for value in values]


def _copies(results: list[Any]) -> Callable[[], Any]:
    """Return a call that copies contiguous results: what a call of NumPy takes that has nothing to find out."""
    return lambda: list(map(_dense, results))


def _dense(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else [item.copy() for item in value]
