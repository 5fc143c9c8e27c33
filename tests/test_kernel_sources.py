"""Each file of kernels/ compiles alone, and the build of the host library does what its options say."""

import importlib.util
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from gpuslice.engine import host_build, host_library
from gpuslice.engine.plan import sources

DEVICE = Path(__file__).parent / "cuda_on_cpu" / "device"
HEADERS = sorted(path.name for path in sources.folder().iterdir() if path.suffix in (".h", ".cuh", ".cu"))
HOST = [name for name in HEADERS if not name.startswith("cuda") and name != "copy.cu"]
CUDA = [name for name in HEADERS if not name.startswith("host")]

needs_gxx = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the kernels are compiled on Linux by g++"
)


def check_syntax(name, *options):
    """Have g++ read a file alone."""
    command = ["g++", "-fsyntax-only", "-w", "-x", "c++", *options, str(sources.folder() / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_gxx
@pytest.mark.parametrize("name", HOST)
def test_a_header_stands_alone_for_the_host(name):
    check_syntax(name, "-std=c++20")


@needs_gxx
@pytest.mark.parametrize("name", CUDA)
def test_a_header_stands_alone_for_cuda(name):
    check_syntax(name, "-std=c++17", f"-I{DEVICE}", "-include", "device.h")


# A library with the functions of the real one, quick to compile.
KERNELS_CPP = """
#include "host.h"
namespace gpuslice {
static void none(const void*, unsigned long long, unsigned long long) {}
#if defined(__AVX2__)
namespace x86_64_v3 {
#elif defined(__SSSE3__)
namespace x86_64_v2 {
#else
namespace baseline {
#endif
RunKernel* find_kernel(unsigned number) { return number ? nullptr : none; }
}
}
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder of kernels that compiles in a second, and the library to be."""
    for name in ("CXX", "CXXFLAGS", "LDFLAGS", "GPUSLICE_KERNELS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in ("host.cpp", "host.h", "config.h", "shared.h"):
        shutil.copy(sources.folder() / name, folder)
    (folder / "host_kernels.cpp").write_text(KERNELS_CPP)
    return folder, tmp_path / "_kernels.so"


@needs_gxx
def test_a_library_is_compiled_and_loaded(small, monkeypatch):
    folder, library = small
    host_build.compile_library(folder, library)
    monkeypatch.setattr(sources, "digest", lambda: sources.digest_of(folder))
    loaded, reason = host_library.load(library)
    assert (reason, loaded.gpuslice_digest().decode()) == ("", sources.digest_of(folder))
    assert [loaded.gpuslice_copy(number, b"", 1, 1) for number in (0, 1, 2**32 - 1)] == [0, 1, 1]
    assert sorted(path.name for path in library.parent.iterdir()) == ["_kernels.so", "kernels"]


@needs_gxx
def test_a_library_of_other_sources_is_not_used(small):
    folder, library = small
    host_build.compile_library(folder, library)
    with pytest.warns(RuntimeWarning, match="nox -s kernels") as caught:
        loaded, reason = host_library.load(library)
    assert len(caught) == 1
    assert loaded is None
    assert sources.digest_of(folder) in reason


@needs_gxx
def test_a_forced_instruction_set(small, monkeypatch):
    folder, library = small
    host_build.compile_library(folder, library)
    monkeypatch.setattr(sources, "digest", lambda: sources.digest_of(folder))
    loaded, _ = host_library.load(library)
    best, *others = names = host_library._compiled_sets(loaded)
    assert loaded.gpuslice_instruction_set().decode() in names
    for name in others:  # an older set is one that the processor has, too
        monkeypatch.setenv("GPUSLICE_INSTRUCTION_SET", name)
        assert host_library.load(library)[0].gpuslice_instruction_set().decode() == name
    monkeypatch.setenv("GPUSLICE_INSTRUCTION_SET", "mmx")
    with pytest.warns(RuntimeWarning, match=rf"GPUSLICE_INSTRUCTION_SET=mmx is not available.*{best}"):
        assert host_library.load(library)[0] is not None


@needs_gxx
def test_kernels_that_do_not_compile_leave_no_library(small):
    folder, library = small
    host_build.compile_library(folder, library)
    (folder / "host_kernels.cpp").write_text("int main() {\n  return nothing;\n}\n")
    with pytest.raises(host_build.KernelsDoNotCompile, match=r"host_kernels.cpp:2:\d+: error: .*nothing"):
        host_build.compile_library(folder, library)
    assert not library.exists()


@needs_gxx
@pytest.mark.parametrize(
    "compiler", ["no-such-compiler", "false", "g++ -std=c++11 -fsyntax-only -Werror -include none.h"]
)
def test_no_compiler_is_told_from_broken_kernels(small, monkeypatch, compiler):
    folder, library = small
    library.write_text("an older one")
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(host_build.NoCompiler, match=compiler.split()[0].replace("+", r"\+")):
        host_build.compile_library(folder, library)
    assert not library.exists()


@needs_gxx
def test_flags_are_honoured(small, monkeypatch):
    folder, library = small
    monkeypatch.setenv("CXXFLAGS", "-DFROM_CXXFLAGS=1 -march=x86-64 -O0")
    monkeypatch.setenv("LDFLAGS", "-Wl,-soname,from_ldflags")
    text = (folder / "host_kernels.cpp").read_text()
    (folder / "host_kernels.cpp").write_text(f"static_assert(FROM_CXXFLAGS);\n{text}")
    host_build.compile_library(folder, library)
    assert b"from_ldflags" in library.read_bytes()


@needs_gxx
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other"])
def test_a_damaged_library_breaks_no_import(small, damage):
    _, library = small
    if damage == "other":
        (library.parent / "other.cpp").write_text('extern "C" int gpuslice_copy() { return 0; }')
        subprocess.run(["g++", "-shared", "-fPIC", str(library.parent / "other.cpp"), "-o", str(library)], check=True)
    elif damage == "cut":
        whole = Path(sys.modules["_struct"].__spec__.origin or sys.executable).read_bytes()
        whole = whole if whole[:4] == b"\x7fELF" else Path(sys.executable).resolve().read_bytes()
        library.write_bytes(whole[: len(whole) // 2])
    else:
        library.write_bytes(b"" if damage == "empty" else b"not a library" * 99)
    code = "import sys; from pathlib import Path; from gpuslice.engine import host_library as h; print(h.load(Path(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("(None, ")
    assert "cannot be loaded" in done.stdout


@pytest.fixture
def hook(small, monkeypatch):
    """The build hook on a project with the small kernels, without hatchling; and what it tells the build."""
    interface = types.ModuleType("interface")
    interface.BuildHookInterface = type("BuildHookInterface", (), {})
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    root = small[0].parent
    plan = root / "gpuslice/engine/plan"
    plan.mkdir(parents=True)
    shutil.copy(host_build.__file__, plan.parent)
    shutil.copy(sources.__file__, plan)
    spec = importlib.util.spec_from_file_location("hatch_build", sources.folder().parent / "hatch_build.py")
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
    not (sources.folder().parent / "hatch_build.py").exists(), reason="the build hook is in a checkout only"
)


@needs_gxx
@in_checkout
def test_an_editable_install_has_the_library_in_place(hook):
    data, included, files = hook()
    assert (data["pure_python"], included, files) == (False, {}, ["_kernels.so"])
    assert data["tag"].startswith("py3-none-linux")


@needs_gxx
@in_checkout
def test_a_wheel_leaves_the_checkout_as_it_is(hook):
    _, included, files = hook("standard")
    assert (list(included), files) == (["gpuslice/_kernels.so"], [])


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
def test_a_build_that_fails(hook, small, monkeypatch, environment, message):
    file = small[0] / "host_kernels.cpp"
    file.write_text("#ifdef BROKEN\n#error as asked\n#endif\n" + file.read_text())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=message):
        hook()


def test_the_reason_of_the_build_is_told(tmp_path):
    library = tmp_path / sources.LIBRARY
    assert host_library.load(library)[1] == "they were not built"
    (tmp_path / sources.REASON).write_text("no C++20 compiler: g++ is not found\n")
    assert host_library.load(library) == (None, "no C++20 compiler: g++ is not found")


def test_copy_without_a_library(monkeypatch):
    monkeypatch.setattr(host_library, "LIBRARY", None)
    with pytest.raises(RuntimeError, match="not available"):
        host_library.copy(0, b"", 1, 1)
    assert host_library.instruction_set() == ""
    assert host_library.instruction_sets() == []


@pytest.mark.skipif(host_library.LIBRARY is None, reason="the host kernels are not built here")
def test_the_kernels_here_are_told():
    assert host_library.reason() == ""
    assert host_library.instruction_set() in host_library.instruction_sets()
    code = "from gpuslice.engine import host_library as h; print(h.instruction_set())"
    for name in host_library.instruction_sets()[1:]:
        environment = os.environ | {"GPUSLICE_INSTRUCTION_SET": name}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name
