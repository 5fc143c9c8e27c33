"""The compiled library: what is loaded, what is refused and why, and which instruction set runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import compiled, needs_gxx

from gpuslice.engine import host_build, host_library
from gpuslice.engine.plan import kernel_sources


@pytest.fixture
def expected_library(small_kernels, monkeypatch):
    """A folder of small kernels and the library compiled from it, as if they were this package's own."""
    folder, library = small_kernels
    host_build.compile_library(folder, library)
    monkeypatch.setattr(kernel_sources, "digest", lambda: kernel_sources.digest_of(folder))
    return folder, library


@needs_gxx
def test_a_library_is_compiled_and_loaded(expected_library):
    folder, library = expected_library
    loaded, reason = host_library.load(library)
    assert (reason, loaded.gpuslice_digest().decode()) == ("", kernel_sources.digest_of(folder))
    assert [loaded.gpuslice_copy(number, b"", 1, 1) for number in (0, 1, 2**32 - 1)] == [0, 1, 1]
    assert sorted(path.name for path in library.parent.iterdir()) == ["_kernels.so", "kernels"]


@needs_gxx
def test_a_library_of_other_sources_is_not_used(small_kernels):
    folder, library = small_kernels
    host_build.compile_library(folder, library)
    with pytest.warns(RuntimeWarning, match="nox -s kernels") as caught:
        loaded, reason = host_library.load(library)
    assert len(caught) == 1
    assert loaded is None
    assert kernel_sources.digest_of(folder) in reason


@needs_gxx
def test_a_forced_instruction_set(expected_library, monkeypatch):
    _, library = expected_library
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
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other"])
def test_a_damaged_library_breaks_no_import(small_kernels, damage):
    _, library = small_kernels
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


def test_the_reason_of_the_build_is_shown(tmp_path):
    library = tmp_path / kernel_sources.LIBRARY
    assert host_library.load(library)[1] == "they were not built"
    (tmp_path / kernel_sources.REASON).write_text("no C++20 compiler: g++ is not found\n")
    assert host_library.load(library) == (None, "no C++20 compiler: g++ is not found")


def test_copy_without_a_library(monkeypatch):
    monkeypatch.setattr(host_library, "LIBRARY", None)
    with pytest.raises(RuntimeError, match="not available"):
        host_library.copy(0, b"", 1, 1)
    assert host_library.instruction_set() == ""
    assert host_library.instruction_sets() == []


@compiled
def test_the_kernels_here_are_shown():
    assert host_library.reason() == ""
    assert host_library.instruction_set() in host_library.instruction_sets()
    code = "from gpuslice.engine import host_library as h; print(h.instruction_set())"
    for name in host_library.instruction_sets()[1:]:
        environment = os.environ | {"GPUSLICE_INSTRUCTION_SET": name}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name
