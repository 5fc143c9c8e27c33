"""Completion of words in the shell, by argcomplete: operators, names of inputs, and files."""

import argparse
from collections import abc
from contextlib import suppress
from typing import Any

from gpuslice.cli.operator_help import argument_names, named_version, operator_names

_ARRAYS = ("npy", "npz")


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end the process; do nothing if argcomplete is not installed."""
    with suppress(ImportError):
        import argcomplete

        for action in _actions(parser):
            action.completer = _COMPLETERS.get(action.dest)  # type: ignore[attr-defined]
        argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> abc.Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        elif action.dest in _COMPLETERS:
            yield action


def _files(prefix: str, *suffixes: str) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return list(FilesCompleter(suffixes)(prefix))


def _operator(prefix: str, **_: Any) -> list[str]:
    return operator_names()


def _argument(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    name, sign, path = prefix.partition("=")
    if sign:
        return [f"{name}={file}" for file in _files(path, *_ARRAYS)]
    try:
        return [f"{name}=" for name in argument_names(named_version(parsed_args.operator))]
    except ValueError:  # there is no such operator
        return []


def _input(prefix: str, **_: Any) -> list[str]:
    name, sign, path = prefix.rpartition("=")
    return [f"{name}={file}" for file in _files(path, *_ARRAYS)] if sign else []


def _model(prefix: str, **_: Any) -> list[str]:
    return _files(prefix, "onnx")


def _output(prefix: str, **_: Any) -> list[str]:
    return _files(prefix, *_ARRAYS)


_COMPLETERS = {"operator": _operator, "arguments": _argument, "input": _input, "model": _model, "output": _output}
