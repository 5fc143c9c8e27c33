"""Which module may import which, and which libraries importing gpuslice loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import MODULES

import gpuslice

# From the bottom up. A module imports only from its own room or from lower ones.
ROOMS = [
    {"gpuslice.rules", "gpuslice.errors", "gpuslice.dtypes", "gpuslice.caches", "gpuslice.display"},
    {"gpuslice.libraries", "gpuslice.library_rows", "gpuslice.torch_tensors"},
    {"gpuslice.arguments", "gpuslice.mapped_files", "gpuslice.overlap"},
    {"gpuslice.engine"},
    {"gpuslice.sequence", "gpuslice.delivery"},
    {"gpuslice.lazy"},
    {"gpuslice.versions"},
    {"gpuslice.operators"},
    {"gpuslice.devices", "gpuslice.config"},
    {"gpuslice.onnx"},
    {"gpuslice"},
    {"gpuslice.cli"},
    {"gpuslice.__main__"},
]
ALONE = ("gpuslice.rules", "gpuslice.errors", "gpuslice.engine.plan")


def imports(path):
    """Yield the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ([name for name in submodules if name in MODULES] or [node.module])


def room(module):
    """Return the height of a module's room."""
    return next(
        height for height, names in enumerate(ROOMS) for name in names
        if module == name or (name != "gpuslice" and module.startswith(f"{name}."))
    )  # fmt: skip


@pytest.mark.parametrize("module", sorted(MODULES))
def test_arrows_point_down(module):
    for imported in imports(MODULES[module]):
        if imported in MODULES or imported == "gpuslice":
            assert room(imported) <= room(module), f"{module} imports {imported}, which is above it"
            alone = next((name for name in ALONE if f"{module}.".startswith(f"{name}.")), None)
            assert alone is None or f"{imported}.".startswith(f"{alone}."), f"{module} imports {imported}"


IMPORTERS = {
    "cupy": {"gpuslice.engine.cuda", "gpuslice.engine.cuda_kernels", "gpuslice.engine.torch_cuda"},
    "jax": {"gpuslice.engine.jax_arrays", "gpuslice.library_rows"},
    "dask": set(),
    "torch": {"gpuslice.torch_tensors"},
}


@pytest.mark.parametrize("library", IMPORTERS)
def test_few_files_import_an_array_library(library):
    importers = {module for module, path in MODULES.items() for name in imports(path) if name.split(".")[0] == library}
    assert importers == IMPORTERS[library]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_the_onnx_layer_imports_onnx(module):
    if not module.startswith("gpuslice.onnx"):
        assert "onnx" not in {name.split(".")[0] for name in imports(MODULES[module])}


def test_rules_need_the_standard_library_only():
    assert {name.split(".")[0] for name in imports(MODULES["gpuslice.rules"])} <= sys.stdlib_module_names


def test_import_brings_no_heavy_library():
    code = "import sys, gpuslice; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"cupy", "onnx", "torch", "dask", "jax", "ml_dtypes", "onnxruntime"} & set(loaded)


def test_the_onnx_layer_says_what_to_install():
    code = "import sys; sys.modules['onnx'] = None; import gpuslice.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ImportError: gpuslice.onnx needs the onnx package: pip install 'gpuslice[onnx]'\n")


def test_the_onnx_layer_says_what_else_is_missing():
    code = "import sys; sys.modules['google.protobuf'] = None; import gpuslice.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "google.protobuf" in done.stderr.splitlines()[-1]


def test_star_import_leaves_the_builtin_slice():
    names = {}
    exec("from gpuslice import *", names)
    assert "slice" not in names
    assert {"split", "contiguous", "Sequence", "trace"} <= set(names)
    assert gpuslice.slice is not slice


TESTS = Path(__file__).parent


def test_no_test_imports_from_another():
    paths = list(TESTS.rglob("*.py"))
    modules = {path.stem for path in paths if path.name.startswith("test_")}
    assert "test_layering" in modules
    for path in paths:
        imported = {name.rpartition(".")[2] for name in imports(path)}
        assert not imported & modules, f"{path.relative_to(TESTS)} imports {imported & modules}"
