"""What an operator version takes on the command line, as text: from the table of versions."""

import inspect
import textwrap
from difflib import get_close_matches

from gpuslice.versions import OPERATORS, VERSIONS, Attribute, Input, Version, find_version, newest

_WIDTH = 100


def operator_names() -> list[str]:
    """Return the names of all operator versions, such as Slice-13."""
    return [version.name for version in VERSIONS]


def named_version(name: str) -> Version:
    """Return the operator version of a name such as Slice-13; raise ValueError if there is none."""
    operator, _, since = name.rpartition("-")
    if not since.isdecimal():
        example = newest(name if name in OPERATORS else "Slice")
        raise ValueError(f"{name}: must be an operator with its version, such as {example}")
    close = [] if operator in OPERATORS else get_close_matches(operator.lower(), map(str.lower, OPERATORS), 1)
    if close:
        meant = next(known for known in OPERATORS if known.lower() == close[0])
        raise ValueError(f"{name}: not a supported operator; did you mean {meant}, such as {newest(meant)}?")
    version = find_version(operator, int(since))
    if version.since != int(since):
        raise ValueError(f"{name}: {operator} has no such version; it has {_listed_versions(operator)}")
    return version


def argument_names(version: Version) -> list[str]:
    """Return the names of inputs and attributes. Split-1 has an input and an attribute with one name."""
    return list(dict.fromkeys([entry.name for entry in version.inputs] + [entry.name for entry in version.attributes]))


def takes_one_int(version: Version, name: str) -> bool:
    """Return whether an index input is one int, or may be: a position, and the size of SplitToSequence."""
    return name == "position" or (version.operator == "SplitToSequence" and name == "split")


def operator_help(name: str) -> str:
    """Return inputs, attributes, outputs and element types of an operator, by default of its newest version."""
    version = named_version(newest(name) if name in OPERATORS else name)
    rows = [(f"{entry.name}={_value(version, entry)}", _input_text(entry)) for entry in version.inputs]
    inputs = _section("inputs", rows)
    attributes = _section(
        "attributes",
        [(f"{entry.name}={_ATTRIBUTES[entry.kind]}", _attribute_text(version, entry)) for entry in version.attributes],
    )
    used = {entry.types for entry in version.inputs}
    types = _section("element types", [(key, ", ".join(sorted(version.types[key]))) for key in sorted(used)])
    outputs = "Several outputs, to an .npz file." if version.many_outputs else "One output."
    versions = f"Versions of {version.operator}: {_listed_versions(version.operator)}."
    return "\n".join(
        [
            f"usage: gpuslice op {version.name} NAME=VALUE ... [-o FILE]{' [--outputs N]' * version.many_outputs}",
            *inputs,
            *attributes,
            *types,
            "",
            outputs,
            versions,
        ]
    )


_ATTRIBUTES = {"int": "INT", "ints": "INT,INT,...", "type": "NUMBER"}


def _value(version: Version, entry: Input) -> str:
    if entry.kind == "sequence":
        return "FILE.npz or FILE.npy,FILE.npy,..."
    if entry.variadic:
        return "FILE.npy,FILE.npy,... or FILE.npz"
    if entry.kind == "tensor":
        return "FILE.npy"
    return index_value(version, entry.name)


def index_value(version: Version, name: str) -> str:
    """Return what an index input may be."""
    if not takes_one_int(version, name):
        return "INT,INT,... or FILE.npy"
    return "INT or FILE.npy" if name == "position" else "INT or INT,INT,... or FILE.npy"


def _input_text(entry: Input) -> str:
    kind = "tensors" if entry.variadic else "ints" if entry.kind == "index" else entry.kind
    return f"{kind} of type {entry.types}, {'optional' if entry.optional else 'required'}"


def _attribute_text(version: Version, entry: Attribute) -> str:
    if entry.required:
        return "required"
    default = inspect.signature(version.run).parameters[entry.name].default
    number = ", the number of an ONNX element type" if entry.kind == "type" else ""
    return "optional" + number + (f", default {default}" if isinstance(default, int) else "")


def _section(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    width = max(len(left) for left, _ in rows) + 4
    lines = [textwrap.wrap(text, _WIDTH - width) for _, text in rows]
    shown = [
        f"  {left:<{width - 2}}" + f"\n{' ' * width}".join(wrapped)
        for (left, _), wrapped in zip(rows, lines, strict=True)
    ]
    return ["", f"{title}:", *shown]


def _listed_versions(operator: str) -> str:
    return ", ".join(str(entry.since) for entry in VERSIONS if entry.operator == operator)
