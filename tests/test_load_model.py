"""load_model: models in files, their external data, and what is said of files that are none."""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import assert_same, model, node

from gpuslice.onnx import Graph, load_model

W = np.arange(500, dtype=np.float32)
LARGE = 2**31


@pytest.fixture
def saved(tmp_path):
    """A model in a file, with its data in another one."""
    given = model([node("Identity", ["w"])], [], ["y"], {"w": W})
    onnx.save(given, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    return tmp_path


@pytest.mark.parametrize("as_path", [str, Path])
def test_external_data_is_read_beside_the_model(saved, as_path, monkeypatch):
    assert_same(Graph(load_model(as_path(saved / "m.onnx"))).run({})["y"], W)
    monkeypatch.chdir(saved)
    assert_same(Graph(load_model(as_path("m.onnx"))).run({})["y"], W)


def test_what_cannot_be_read(saved):
    path = str(saved / "m.onnx")
    (saved / "w.bin").write_bytes(W.tobytes()[:-4])
    # Old versions of onnx do not look at the length.
    with pytest.raises(ValueError, match=f"^({path}: cannot be read; external data: .*|tensor 'w' cannot be read: )"):
        Graph(load_model(path))
    (saved / "w.bin").unlink()
    with pytest.raises(ValueError, match=f"^{path}: cannot be read; external data: .*w"):
        load_model(path)
    (saved / "m.onnx").write_bytes((saved / "m.onnx").read_bytes()[:-3])
    with pytest.raises(ValueError, match=f"^{path}: not an ONNX model"):
        load_model(path)
    with (saved / "huge.onnx").open("wb") as file:
        file.truncate(LARGE)  # sparse
    with pytest.raises(ValueError, match=f"huge.onnx: cannot be read; {LARGE} bytes are more than the 2147483647 "):
        load_model(str(saved / "huge.onnx"))
    (saved / "text.json").write_text("{")
    with pytest.raises(ValueError, match="text.json: cannot be read; ."):
        load_model(str(saved / "text.json"))
    with pytest.raises(OSError, match="none.onnx: No such file or directory"):
        load_model(str(saved / "none.onnx"))
    with pytest.raises(OSError, match="Is a directory"):
        load_model(str(saved))
    with pytest.raises(TypeError, match="path must be a str or a path; got NoneType"):
        load_model(None)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read any file")
def test_permission(saved):
    (saved / "m.onnx").chmod(0)
    with pytest.raises(OSError, match="m.onnx: Permission denied"):
        load_model(str(saved / "m.onnx"))
