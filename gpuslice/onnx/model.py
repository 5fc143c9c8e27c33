"""Models before they run: reading one, its opset, and the nodes of it that cannot run."""

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from gpuslice.onnx.node import DOMAINS, version_of

# Operators that move nothing and that a graph of ours may hold all the same.
COMMON = ("Constant", "Identity")


def load_model(path: str) -> ModelProto:
    """Read a model from a file.

    Raises
    ------
    OSError
        No such file, or one that can't be read.
    ValueError
        Not an ONNX model.
    """
    try:
        model = onnx.load(path)
    except OSError as error:
        raise OSError(f"{path}: {error.strerror or error}") from None
    except DecodeError:
        raise ValueError(f"{path}: not an ONNX model") from None
    except Exception as error:  # lost external data, among others
        raise ValueError(f"{path}: cannot be read; {error}") from error
    if not model.graph.node and not model.graph.output:
        raise ValueError(f"{path}: not an ONNX model, or one without nodes")
    return model


def opset_of(model: ModelProto) -> int:
    """Give the opset of the default domain; ValueError where a model imports none."""
    versions = [entry.version for entry in model.opset_import if entry.domain in DOMAINS]
    if not versions:
        raise ValueError("model must import an opset of domain '' or 'ai.onnx'; it imports none")
    return int(versions[0])


def unsupported(model: ModelProto) -> list[str]:
    """List every node of a model that `Graph` cannot run, each with the reason; empty where it can."""
    opset, problems = opset_of(model), []
    for position, node in enumerate(model.graph.node):
        if node.op_type in COMMON and node.domain in DOMAINS:
            continue
        try:
            version_of(node, opset)
        except ValueError as error:
            problems.append(f"{node.op_type} (node {node.name or f'#{position}'}): {str(error).partition(': ')[2]}")
    return problems
