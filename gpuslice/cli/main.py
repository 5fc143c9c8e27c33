"""The command line: run a model, run one operator, show the configuration."""

import argparse
import os
import signal
from collections import abc
from contextlib import suppress
from typing import Any, NoReturn

from gpuslice.cli.interrupts import Interrupted, interruptible, received
from gpuslice.cli.text import reason, report, show
from gpuslice.config import describe_config

_FAILED = 2
_SIGNAL = 128  # a shell adds it to the number of the signal that ended a command
_SIGPIPE = 13
_REFUSALS = (ImportError, IndexError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError)


class _UsageError(Exception):
    """The arguments are not those of a command."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: Any = None) -> None:
        show(self.format_help().rstrip("\n"))


def main(arguments: abc.Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit code. 0; 2 after one line on standard error that says what was wrong; 130, 143 and 129 after SIGINT,
        SIGTERM and SIGHUP, with such a line; 141 if nobody reads what is printed any more.
    """
    code, message = 0, ""
    with suppress(Interrupted), interruptible():
        code, message = _outcome(arguments)
    number = received()
    if number is not None:
        code, message = _SIGNAL + number, f"stopped by {signal.Signals(number).name}"
    if message:
        report(message)
    return code


def _outcome(arguments: abc.Sequence[str] | None) -> tuple[int, str]:
    """Run a command, and return its exit code and what is wrong."""
    try:
        _run(arguments)
    except BrokenPipeError:
        return _SIGNAL + _SIGPIPE, ""
    except (_UsageError, *_REFUSALS) as error:
        file = error.filename if isinstance(error, OSError) else None
        return _FAILED, reason(error) if file is None else f"{os.fsdecode(file)}: {reason(error)}"
    except SystemExit:  # argparse ends so after --help
        pass
    return 0, ""


def _run(arguments: abc.Sequence[str] | None) -> None:
    given, extra = _parser().parse_known_args(arguments)
    if extra:
        # argparse does not accept positional arguments after an option. Ours all hold an equals sign.
        if given.command != "op" or any(word.startswith("-") for word in extra):
            raise _UsageError(f"unknown arguments: {' '.join(extra)}")
        given.arguments += extra
    given.run(given)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gpuslice", description="Run ONNX's Slice, Split and sequence operators on files of arrays.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_run(commands.add_parser("run", help="run a model made of these operators"))
    _add_operator(commands.add_parser("op", help="run one operator, such as Slice-13"))
    _add_warm_up(commands.add_parser("warm-up", help="compile the CUDA kernels before they are needed"))
    commands.add_parser("info", help="show versions and devices").set_defaults(run=lambda _: show(describe_config()))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an .onnx file")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an .npy file; for a sequence an .npz file or .npy files separated by commas",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz", help="the file for all outputs, by name")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--part", type=int, metavar="N", help="run only the N-th, from 1, of the parts that can run")
    parser.set_defaults(run=_run_model)


def _add_operator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operator", metavar="OPERATOR-VERSION")
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="NAME=VALUE",
        help="inputs and attributes: .npy files, or ints separated by commas; NAME:bfloat16=FILE names the type",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help=".npy, or .npz for several outputs; default: print")
    parser.add_argument("--outputs", type=int, metavar="N", help="number of outputs of a Split without sizes")
    parser.set_defaults(run=_run_operator)


def _add_warm_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width",
        action="append",
        type=int,
        metavar="BYTES",
        help="only kernels for items of so many bytes: 1, 2, 4, 8 or 16; may be repeated",
    )
    parser.set_defaults(run=_warm_up)


# `run` and `op` need the onnx package, the others do not.
def _run_model(given: argparse.Namespace) -> None:
    from gpuslice.cli.run import run_model

    run_model(given.model, given.input, given.output, given.device, given.part)


def _run_operator(given: argparse.Namespace) -> None:
    from gpuslice.cli.op import run_operator_command

    run_operator_command(given.operator, given.arguments, given.outputs, given.output)


def _warm_up(given: argparse.Namespace) -> None:
    from gpuslice.cli.warm_up import warm_up_command

    warm_up_command(given.width)
