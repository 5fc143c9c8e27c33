"""load_model: a model from its file, with the data that lies beside it."""

import os
from collections import abc
from contextlib import contextmanager
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, external_data_helper

from gpuslice.errors import describe

# What a protobuf can hold.
_MOST_BYTES = 2**31 - 1


def load_model(path: str | os.PathLike[str]) -> ModelProto:
    """Return the model in a file, with its external data, which lies in files beside it.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OSError
        The file does not exist or cannot be read.
    ValueError
        The file is not an ONNX model, is too large to be one, or data beside it is missing or cut short.
    MemoryError
        There is not enough memory.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a str or a path; got {describe(path)}")
    with _reasons(path):
        size = Path(path).stat().st_size
        if size > _MOST_BYTES:
            raise ValueError(
                f"{size} bytes are more than the {_MOST_BYTES} that a protobuf can hold; a model of this size must "
                "have its weights as external data"
            )
        model = onnx.load(path, load_external_data=False)
    if not model.graph.node and not model.graph.output:
        raise ValueError(f"{path}: not an ONNX model, or one without nodes")
    try:
        external_data_helper.load_external_data_for_model(model, str(Path(path).absolute().parent))
    except MemoryError:
        raise MemoryError(f"{path}: not enough memory for its external data") from None
    except Exception as error:  # onnx has no one error for data that is missing or cut short
        raise ValueError(f"{path}: cannot be read; external data: {error or type(error).__name__}") from error
    return model


@contextmanager
def _reasons(path: object) -> abc.Iterator[None]:
    """Say in every error which file it is about, and why it cannot be read."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: {error.strerror or error}") from None
    except DecodeError:
        raise ValueError(f"{path}: not an ONNX model") from None
    except MemoryError:
        raise MemoryError(f"{path}: not enough memory to read it") from None
    except Exception as error:  # models as text, by the suffix of the name, have other parsers
        raise ValueError(f"{path}: cannot be read; {error or type(error).__name__}") from error
