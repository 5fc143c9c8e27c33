"""Each file of kernels/ compiles alone; the compiler, its flags and the build hook do what the options say."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest
from helpers import needs_gxx

from gpuslice.engine import host_build
from gpuslice.engine.plan import kernel_sources

DEVICE = Path(__file__).parent / "cuda_on_cpu" / "device"
HEADERS = sorted(path.name for path in kernel_sources.folder().iterdir() if path.suffix in (".h", ".cuh", ".cu"))
HOST = [name for name in HEADERS if not name.startswith("cuda") and name != "copy.cu"]
CUDA = [name for name in HEADERS if not name.startswith(("host", "calls"))]


def check_syntax(name, *options):
    """Have g++ read a file alone."""
    command = ["g++", "-fsyntax-only", "-w", "-x", "c++", *options, str(kernel_sources.folder() / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_gxx
@pytest.mark.parametrize("name", HOST)
def test_a_header_stands_alone_for_the_host(name):
    headers = [f"-I{folder}" for folder in host_build._header_folders()] if name.startswith("calls") else []
    check_syntax(name, "-std=c++20", *headers)


@needs_gxx
@pytest.mark.parametrize("name", CUDA)
def test_a_header_stands_alone_for_cuda(name):
    check_syntax(name, "-std=c++17", f"-I{DEVICE}", "-include", "device.h")


@needs_gxx
def test_kernels_that_do_not_compile_leave_no_library(small_kernels):
    folder, library = small_kernels
    host_build.compile_library(folder, library)
    (folder / "host_kernels.cpp").write_text("int main() {\n  return nothing;\n}\n")
    with pytest.raises(host_build.KernelsDoNotCompile, match=r"host_kernels.cpp:2:\d+: error: .*nothing"):
        host_build.compile_library(folder, library)
    assert not library.exists()


@needs_gxx
@pytest.mark.parametrize(
    "compiler", ["no-such-compiler", "false", "g++ -std=c++11 -fsyntax-only -Werror -include none.h"]
)
def test_no_compiler_is_another_error_than_broken_kernels(small_kernels, monkeypatch, compiler):
    folder, library = small_kernels
    library.write_text("an older one")
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(host_build.NoCompiler, match=compiler.split()[0].replace("+", r"\+")):
        host_build.compile_library(folder, library)
    assert not library.exists()


@needs_gxx
def test_flags_are_honoured(small_kernels, monkeypatch):
    folder, library = small_kernels
    monkeypatch.setenv("CXXFLAGS", "-DFROM_CXXFLAGS=1 -march=x86-64 -O0")
    monkeypatch.setenv("LDFLAGS", "-Wl,-soname,from_ldflags")
    text = (folder / "host_kernels.cpp").read_text()
    (folder / "host_kernels.cpp").write_text(f"static_assert(FROM_CXXFLAGS);\n{text}")
    host_build.compile_library(folder, library)
    assert b"from_ldflags" in library.read_bytes()


@pytest.fixture
def hook(small_kernels, monkeypatch):
    """The build hook on a project with the small kernels, without hatchling; and what it changes."""
    interface = types.ModuleType("interface")
    interface.BuildHookInterface = type("BuildHookInterface", (), {})
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    root = small_kernels[0].parent
    plan = root / "gpuslice/engine/plan"
    plan.mkdir(parents=True)
    shutil.copy(host_build.__file__, plan.parent)
    shutil.copy(kernel_sources.__file__, plan)
    spec = importlib.util.spec_from_file_location("hatch_build", kernel_sources.folder().parent / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.CustomBuildHook()
    made.root, made.target_name = str(root), "wheel"
    made.app = types.SimpleNamespace(display_warning=lambda text: None)

    def run(version="editable"):
        data = {"force_include": {}}
        made.initialize(version, data)
        included = {target: Path(source).read_bytes() for source, target in data["force_include"].items()}
        made.finalize(version, data, None)
        return data, included, sorted(path.name for path in (root / "gpuslice").iterdir() if path.is_file())

    return run


in_checkout = pytest.mark.skipif(
    not (kernel_sources.folder().parent / "hatch_build.py").exists(), reason="the build hook is in a checkout only"
)


@needs_gxx
@in_checkout
def test_an_editable_install_has_the_library_in_place(hook):
    data, included, files = hook()
    assert (data["pure_python"], included, files) == (False, {}, ["_calls.abi3.so", "_kernels.so"])
    assert data["tag"].startswith("py3-none-linux")


@needs_gxx
@in_checkout
def test_a_wheel_leaves_the_checkout_as_it_is(hook):
    _, included, files = hook("standard")
    assert (sorted(included), files) == (["gpuslice/_calls.abi3.so", "gpuslice/_kernels.so"], [])


@needs_gxx
@in_checkout
@pytest.mark.parametrize(
    ("environment", "reason"),
    [({"CXX": "none"}, b"no C++20 compiler: none is not found"), ({"GPUSLICE_KERNELS": "off"}, b"off")],
)
def test_a_pure_wheel_says_why(hook, monkeypatch, environment, reason):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    data, included, _ = hook("standard")
    assert "pure_python" not in data
    assert reason in included["gpuslice/_no_kernels.txt"]


def without_headers_of_python(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/none")


def without_numpy(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numpy" else real(name))


def without_a_stable_abi(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED")


@needs_gxx
@in_checkout
@pytest.mark.parametrize(
    ("without", "reason"),
    [
        (without_headers_of_python, "the headers of Python are not in /none"),
        (without_numpy, "the headers of NumPy 2 are not installed"),
        (without_a_stable_abi, "this Python has no stable ABI"),
    ],
)
def test_a_wheel_without_the_module_for_known_calls(hook, small_kernels, monkeypatch, without, reason):
    without(monkeypatch)
    with pytest.raises(host_build.NoHeaders, match=reason):
        host_build.compile_calls(small_kernels[0], small_kernels[1].with_name("calls"))
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    data, included, _ = hook("standard")
    assert (list(included), data["tag"]) == (["gpuslice/_kernels.so"], "py3-none-linux_x86_64")
    monkeypatch.setenv("GPUSLICE_KERNELS", "require")
    with pytest.raises(SystemExit, match=f"require, but {reason}"):
        hook()


@needs_gxx
@in_checkout
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"GPUSLICE_KERNELS": "require", "CXX": "none"}, "require, but no C.*none is not found"),
        ({"GPUSLICE_KERNELS": "yes"}, "must be one of auto, require, off; got 'yes'"),
        ({"CXXFLAGS": "-DBROKEN"}, r"the kernels do not compile:\n.*host_kernels.cpp:2:\d+: error: #error as asked"),
    ],
)
def test_a_build_that_fails(hook, small_kernels, monkeypatch, environment, message):
    file = small_kernels[0] / "host_kernels.cpp"
    file.write_text("#ifdef BROKEN\n#error as asked\n#endif\n" + file.read_text())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=message):
        hook()
