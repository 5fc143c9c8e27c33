"""Models before they run: the opset, and the nodes that cannot run."""

from onnx import ModelProto, NodeProto

from gpuslice.errors import describe
from gpuslice.onnx.node import DOMAINS, version_of
from gpuslice.versions import OPERATORS

# Operators that move nothing. A graph may have them too.
COMMON = ("Constant", "Identity")

# Before this IR version models had no imports, and all operators were those of opset 1.
_FIRST_IR_WITH_OPSETS = 3
_MOST_SHOWN = 10


class UnsupportedNodes(ValueError):
    """A model has nodes that `Graph` cannot run."""


def check_model(model: object) -> None:
    """Raise TypeError if an object is not a ModelProto."""
    if not isinstance(model, ModelProto):
        raise TypeError(f"model must be an onnx.ModelProto; got {describe(model)}")


def opset_of(model: ModelProto) -> int:
    """Return the opset of the default domain, the highest if there are several.

    Raises
    ------
    ValueError
        The model imports no opset of the default domain, or one below 1.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in DOMAINS]
    if not versions and not model.opset_import and 0 < model.ir_version < _FIRST_IR_WITH_OPSETS:
        return 1
    if not versions:
        raise ValueError("model must import an opset of domain '' or 'ai.onnx'; it imports none")
    if max(versions) < 1:
        raise ValueError(f"model must import an opset of at least 1; it imports {max(versions)}")
    return int(max(versions))


def unsupported(model: ModelProto) -> list[str]:
    """Return what `Graph` cannot run of a model: per operator how many nodes, the first of them and the reason.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    list of str
        Such as ``"Conv: 64 nodes, first 'conv_1'"``. Empty if all nodes can run.

    Raises
    ------
    ValueError
        The model imports no opset of the default domain.
    TypeError
        ``model`` is not a ModelProto.
    """
    check_model(model)
    opset, functions = opset_of(model), functions_of(model)
    found: dict[tuple[str, str], list[str]] = {}
    for position, node in enumerate(model.graph.node):
        reason = reason_against(node, opset, functions)
        if reason is not None:
            found.setdefault((node.op_type, reason), []).append(name_of(node, position))
    return [_line(operator, reason, names) for (operator, reason), names in found.items()]


def check_supported(model: ModelProto) -> None:
    """Raise an error that says what cannot run, and what to do instead, if `unsupported` finds anything.

    Raises
    ------
    UnsupportedNodes
    """
    lines = unsupported(model)
    if lines:
        more = f"; and {len(lines) - _MOST_SHOWN} more" if len(lines) > _MOST_SHOWN else ""
        raise UnsupportedNodes(
            f"model has nodes that gpuslice cannot run: {'; '.join(lines[:_MOST_SHOWN])}{more}. "
            f"Supported are {', '.join((*OPERATORS, *COMMON))}. parts(model) returns the parts that can run (command "
            "line: gpuslice run --part N); run_node runs one node; reference_ops has these operators for "
            "onnx.reference, which runs all of the model"
        )


def functions_of(model: ModelProto) -> set[str]:
    """Return the operators of the default domain that a model replaces by functions of its own."""
    return {function.name for function in model.functions if function.domain in DOMAINS}


def reason_against(node: NodeProto, opset: int, functions: set[str]) -> str | None:
    """Return why a node cannot run; "" if its operator is none of ours, None if it can run."""
    if node.domain in DOMAINS:
        if node.op_type in functions:
            return "the model defines it as a function"
        if node.op_type in COMMON:
            return None
        if node.op_type not in OPERATORS:
            return ""
    try:
        version_of(node, opset)
    except ValueError as error:
        return str(error).removeprefix(f"{node.op_type}: ")
    return None


def name_of(node: NodeProto, position: int) -> str:
    """Return a node's name, or its position such as "#3"."""
    return node.name or f"#{position}"


def _line(operator: str, reason: str, names: list[str]) -> str:
    count = "1 node," if len(names) == 1 else f"{len(names)} nodes, first"
    return f"{operator}: {count} {names[0]!r}" + (f" ({reason})" if reason else "")
