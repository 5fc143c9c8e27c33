"""The arguments of the commands, and what each command calls."""

import argparse
import json
import os
from collections import abc
from typing import Any, NoReturn

from gpuslice import __version__
from gpuslice.cli.operator_help import operator_help, operator_names
from gpuslice.cli.text import show
from gpuslice.config import describe_config, read_config


class UsageError(Exception):
    """The arguments are not those of a command."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: Any = None) -> None:
        show(self.format_help().rstrip("\n"))


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        show(f"gpuslice {__version__}")
        parser.exit()


class _OperatorHelp(argparse.Action):
    """``op --help``; after the name of an operator, as in ``op Slice-13 --help``, what that one takes."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *rest: Any) -> None:
        if namespace.operator is None:
            parser.print_help()
        else:
            show(operator_help(namespace.operator))
        parser.exit()


def parse(arguments: abc.Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments of a command. ``run`` is the function that runs it.

    Raises
    ------
    UsageError
        They are not those of a command.
    SystemExit
        They asked for a help text or the version, which is printed.
    """
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks which words may come next
        from gpuslice.cli.completion import complete

        complete(parser)
    given, extra = parser.parse_known_args(arguments)
    if extra:
        # argparse does not accept positional arguments after an option. Ours all hold an equals sign.
        if given.command != "op" or any(word.startswith("-") for word in extra):
            raise UsageError(f"unknown arguments: {' '.join(extra)} (see gpuslice {given.command} --help)")
        given.arguments += extra
    return given


_EXAMPLES = """\
examples:
  gpuslice op Slice-13 data=x.npy starts=-1 ends=-99 steps=-1 -o y.npy
  gpuslice op Split-18 --help
  gpuslice run model.onnx -i x=x.npy -o results.npz

"gpuslice COMMAND --help" says what a command takes."""


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpuslice",
        description="Run ONNX's Slice, Split and sequence operators on files of arrays.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser, title="commands")
    _add_run(commands.add_parser("run", help="run a model made of these operators"))
    _add_operator(
        commands.add_parser(
            "op",
            help="run one operator, such as Slice-13",
            epilog=f"Operators: {', '.join(operator_names())}. For what one takes: gpuslice op Slice-13 --help",
            add_help=False,
        )
    )
    _add_warm_up(commands.add_parser("warm-up", help="compile the CUDA kernels before they are needed"))
    _add_info(commands.add_parser("info", help="show versions and devices"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="an .onnx file")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an input of the model: an .npy file, for a sequence an .npz file or .npy files separated by commas; "
        "once for each input",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz", help="the file for all outputs, by name")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where it runs; auto: on a GPU if there is one",
    )
    parser.add_argument("--part", type=int, metavar="N", help="run only the N-th, from 1, of the parts that can run")
    parser.set_defaults(run=_run_model)


def _add_operator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--help", action=_OperatorHelp, nargs=0, help="show this text, or what an operator takes")
    parser.add_argument("operator", metavar="OPERATOR-VERSION", help="such as Slice-13")
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


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as a JSON object")
    parser.set_defaults(run=_info)


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


def _info(given: argparse.Namespace) -> None:
    show(json.dumps(read_config(), indent=2) if given.json else describe_config())
