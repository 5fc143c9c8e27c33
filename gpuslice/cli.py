"""The command line: run a model, run one operator, show the configuration."""

import argparse
import sys
import time
from collections.abc import Sequence as Values
from typing import Any, NoReturn

from gpuslice import devices
from gpuslice.arrays import Array, dtype_name
from gpuslice.config import describe_config
from gpuslice.engine import trace
from gpuslice.files import read_array, read_arrays, write_array, write_arrays
from gpuslice.sequence import Sequence

_FAILED = 2
_HEADER: tuple[str, ...] = ("node", "operator", "output", "shape", "dtype", "device")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"gpuslice: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(_FAILED)


def main(arguments: Values[str] | None = None) -> int:
    """Run the command line; the exit code is 0, or 2 where one line on standard error says what was wrong."""
    given, extra = _parser().parse_known_args(arguments)
    try:
        if extra:
            # argparse gives up on positional arguments that come after an option; ours all hold an equals sign.
            if given.command != "op" or any(word.startswith("-") for word in extra):
                raise ValueError(f"unknown arguments: {' '.join(extra)}")
            given.arguments += extra
        given.run(given)
    except (ImportError, IndexError, MemoryError, OSError, OverflowError, TypeError, ValueError) as error:
        print(f"gpuslice: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return _FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gpuslice", description="ONNX's data-movement operators on files of arrays.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    run = commands.add_parser("run", help="run a model made of these operators")
    run.add_argument("model", metavar="MODEL", help="an .onnx file")
    run.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an .npy file; for a sequence an .npz file or .npy files separated by commas",
    )
    run.add_argument("-o", "--output", required=True, metavar="FILE.npz", help="where the outputs go, by their names")
    run.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    run.set_defaults(run=_run_model)
    operator = commands.add_parser("op", help="run one operator, such as Slice-13")
    operator.add_argument("operator", metavar="OPERATOR-VERSION")
    operator.add_argument(
        "arguments",
        nargs="*",
        metavar="NAME=VALUE",
        help="inputs and attributes: .npy files, or ints separated by commas; NAME:bfloat16=FILE says what bytes are",
    )
    operator.add_argument("-o", "--output", metavar="FILE", help=".npy, or .npz for several outputs; default: print")
    operator.add_argument("--outputs", type=int, metavar="N", help="how many outputs a Split without sizes has")
    operator.set_defaults(run=_run_operator)
    commands.add_parser("info", help="show versions and devices").set_defaults(run=lambda _: print(describe_config()))
    return parser


def _run_model(given: argparse.Namespace) -> None:
    from gpuslice.onnx import Graph, load_model
    from gpuslice.onnx.evaluate import finish

    if not given.output.endswith(".npz"):
        raise ValueError(f"{given.output!r}: must be an .npz file")
    device = {"auto": "CUDA" if devices.is_available("CUDA") else "CPU"}.get(given.device, given.device.upper())
    devices.check(device)
    graph = Graph(load_model(given.model))
    inputs = {}
    for name, files in map(_name_and_value, given.input):
        if name in inputs:
            raise ValueError(f"input {name!r} must be given once; got it twice")
        declared = graph.declared.get(name)
        if declared is None:
            raise ValueError(f"the model has no input {name!r}; it has {', '.join(graph.inputs) or 'none'}")
        read = read_arrays if declared.is_sequence else read_array
        inputs[name] = devices.place(read(files, declared.dtype or None), device)
    rows = [_HEADER]
    values = graph.propagate(inputs, lambda *row: rows.append((*row[:3], *_cells(row[3]))))
    with trace() as collected:
        began = time.perf_counter()
        results = finish(list(values.values()))
        devices.synchronize(device)
        milliseconds = (time.perf_counter() - began) * 1e3
    write_arrays(given.output, _named(zip(values, devices.to_host(results), strict=True)))
    written = sum(launch.bytes_written for launch in collected.launches)
    print(_table(rows))
    count = len(collected.launches)
    launches = "1 launch" if count == 1 else f"{count} launches"
    print(f"outputs: {launches}, {written} bytes, {milliseconds:.3f} ms -> {given.output}")


def _run_operator(given: argparse.Namespace) -> None:
    from gpuslice.onnx.command import run_operator

    results = run_operator(given.operator, [_name_and_value(word) for word in given.arguments], given.outputs)
    several = len(results) > 1 or isinstance(results[0], Sequence)
    named = _named((f"output_{i}" if len(results) > 1 else "output", value) for i, value in enumerate(results))
    if given.output is None:
        for name, array in named.items():
            print(f"{name}: {_cells(array)[0]} {dtype_name(array.dtype)}\n{array}")
    elif given.output.endswith(".npz"):
        write_arrays(given.output, named)
    elif several or not given.output.endswith(".npy"):
        raise ValueError(f"{given.output!r}: must be an .npz file" + ("" if several else " or an .npy file"))
    else:
        write_array(given.output, results[0])


def _name_and_value(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"arguments must be NAME=VALUE; got {word!r}")
    return name, value


def _named(results: Any) -> dict[str, Array]:
    """Give each array its name in the file; the tensors of a sequence ``x`` are x_0, x_1, ..."""
    named: dict[str, Array] = {}
    for name, value in results:
        items = {f"{name}_{i}": item for i, item in enumerate(value)} if isinstance(value, Sequence) else {name: value}
        clash = named.keys() & items.keys()
        if clash:
            raise ValueError(f"two outputs would be called {sorted(clash)[0]!r} in the file")
        named |= items
    return named


def _cells(value: Any) -> tuple[str, str, str]:
    if not isinstance(value, Sequence):
        shape = f"({', '.join(map(str, value.shape))})"
        return shape, dtype_name(value.dtype), str(value.device)
    cells = [_cells(item) for item in value]
    shapes, places = dict.fromkeys(cell[0] for cell in cells), dict.fromkeys(cell[2] for cell in cells)
    return f"{len(value)} x {' '.join(shapes) or '()'}", value.dtype, " ".join(places)


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
