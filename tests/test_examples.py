"""The example: its script builds its model, and the results are NumPy's."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from helpers import assert_same

from gpuslice.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of the README's first command."""
    path = tmp_path_factory.mktemp("tiles") / "results.npz"
    image = EXAMPLES / "astronaut.npy"
    assert main(["run", str(EXAMPLES / "tiles.onnx"), "-i", f"image={image}", "-o", str(path)]) == 0
    return path


def test_the_results_are_numpys(results):
    image = np.load(EXAMPLES / "astronaut.npy")
    mirror = image[:, ::-1].copy()
    crop = mirror[32:160, 64:256].copy()
    band = crop[64:]
    expected = {"mirror": mirror, "crop": crop, "tile": band[:, 64:128].copy()}
    expected |= {name: crop[..., i : i + 1].copy() for i, name in enumerate(("red", "green", "blue"))}
    expected |= {f"tiles_{i}": band[:, 64 * i : 64 * (i + 1)].copy() for i in range(3)}
    with np.load(results) as given:
        assert set(given.files) == set(expected)
        for name, array in expected.items():
            assert_same(given[name], array)


def test_the_model_is_what_the_script_builds(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "build_tiles.py", tmp_path / "tiles.onnx"], check=True)
    assert onnx.load(tmp_path / "tiles.onnx") == onnx.load(EXAMPLES / "tiles.onnx")


def test_the_picture(results, tmp_path):
    image = pytest.importorskip("PIL.Image")
    assert_same(np.asarray(image.open(EXAMPLES / "astronaut.png")), np.load(EXAMPLES / "astronaut.npy"))
    subprocess.run([sys.executable, EXAMPLES / "show_tiles.py", results, tmp_path / "picture.png"], check=True)
    picture = np.asarray(image.open(tmp_path / "picture.png"))
    assert (picture[:240, :320] == np.load(EXAMPLES / "astronaut.npy")[:, ::-1]).all()
