"""Fixtures, the gpu mark, and one line per reason for the tests that were skipped."""

import shutil
from collections import Counter

import pytest
from libraries import WHOLE_SUITE

from gpuslice.engine import choice
from gpuslice.engine.plan import kernel_sources

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

pytest.register_assert_rewrite("helpers")
pytest_plugins = ["cuda_on_cpu.plugin"]  # --cuda-on-cpu


def pytest_addoption(parser):
    """Add the option of tests/models/. Old versions of pytest do not read it from a file there."""
    parser.addoption("--models", help="folder with the wheels of silero-vad and rapidocr-onnxruntime")


@pytest.fixture(params=[library.param for library in WHOLE_SUITE])
def xp(request):
    """The namespace of each array library in turn."""
    return request.param.xp


@pytest.fixture
def kernels_from_512_bytes(monkeypatch):
    """Have kernels copy arrays that NumPy otherwise copies faster, so that the arrays of a test can be small."""
    monkeypatch.setattr(choice, "SMALL_BYTES", 1 << 9)


@pytest.fixture
def small_kernels(tmp_path, monkeypatch):
    """A folder of kernels that compiles in a second, and the library to be."""
    for name in ("CXX", "CXXFLAGS", "LDFLAGS", "GPUSLICE_KERNELS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name in ("host.cpp", "host.h", "config.h", "shared.h"):
        shutil.copy(kernel_sources.folder() / name, folder)
    (folder / "host_kernels.cpp").write_text(KERNELS_CPP)
    return folder, tmp_path / "_kernels.so"


def pytest_runtest_setup(item):
    """Skip the gpu tests if there is no GPU, and say why."""
    if item.get_closest_marker("gpu"):
        try:
            import cupy
        except ImportError:
            pytest.skip("CuPy is not installed")
        if not cupy.cuda.is_available():
            pytest.skip("no CUDA device: cupy.cuda.is_available() is False")


def pytest_terminal_summary(terminalreporter):
    """Print one line per reason for which tests were skipped: pytest's own list has one per place as well."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
