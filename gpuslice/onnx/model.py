"""Models before they run: reading a file, the opset, and the nodes that cannot run."""

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from gpuslice.onnx.node import DOMAINS, version_of

# Operators that move nothing. A graph may have them too.
COMMON = ("Constant", "Identity")


def load_model(path: str) -> ModelProto:
    """Return the model in a file.

    Parameters
    ----------
    path : str

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OSError
        The file does not exist or cannot be read.
    ValueError
        The file is not an ONNX model.
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
    """Return the opset of the default domain; raise ValueError if the model imports none."""
    versions = [entry.version for entry in model.opset_import if entry.domain in DOMAINS]
    if not versions:
        raise ValueError("model must import an opset of domain '' or 'ai.onnx'; it imports none")
    return int(versions[0])


def unsupported(model: ModelProto) -> list[str]:
    """Return one line per node of a model that `Graph` cannot run, with the reason.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    list of str
        Empty if the graph can run.

    Raises
    ------
    ValueError
        The model imports no opset of the default domain.
    """
    opset, problems = opset_of(model), []
    for position, node in enumerate(model.graph.node):
        if node.op_type in COMMON and node.domain in DOMAINS:
            continue
        try:
            version_of(node, opset)
        except ValueError as error:
            problems.append(f"{node.op_type} (node {node.name or f'#{position}'}): {str(error).partition(': ')[2]}")
    return problems
