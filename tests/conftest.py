"""Fixtures, the gpu mark, and one line per reason for the tests that were skipped."""

import math
import random
import shutil
from collections import Counter

import pytest
from libraries import WHOLE_SUITE

import gpuslice as gs
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
    parser.addoption("--models", help="folder with the wheels of bench/models.txt")
    parser.addoption("--seed", type=int, default=0, help="seed of tests/campaigns/")
    parser.addoption("--rounds", type=float, default=1, help="factor for the number of rounds of tests/campaigns/")


class Campaign:
    """Random numbers of a campaign, how long it runs, and what it did, which is printed at the end.

    Attributes
    ----------
    seed : int
    random : random.Random
    counts : collections.Counter
        What was executed, by any name.
    """

    def __init__(self, seed, factor):
        self.seed = seed
        self.random = random.Random(seed)
        self.counts = Counter()
        self._factor = factor

    def rounds(self, count):
        """Return a range of so many rounds, times the factor ``--rounds``."""
        return range(max(1, round(count * self._factor)))


@pytest.fixture
def campaign(request):
    """The `Campaign` of a test in tests/campaigns/."""
    run = Campaign(request.config.getoption("--seed"), request.config.getoption("--rounds"))
    yield run
    counts = ", ".join(f"{count} {name}" for name, count in run.counts.items())
    request.node.user_properties.append(("campaign", f"{request.node.name}, seed {run.seed}: {counts or 'nothing'}"))


@pytest.fixture(params=[library.param for library in WHOLE_SUITE])
def xp(request):
    """The namespace of each array library in turn."""
    return request.param.xp


@pytest.fixture
def kernels_from_512_bytes(monkeypatch):
    """Have kernels copy arrays that NumPy otherwise copies faster, so that the arrays of a test can be small."""
    yield from kernels_from(monkeypatch, 1 << 9)


@pytest.fixture
def kernels_for_all(monkeypatch):
    """Have kernels copy all that they can."""
    yield from kernels_from(monkeypatch, 0)


def kernels_from(monkeypatch, least):
    """Have kernels copy views of at least so many bytes in all, and forget what was chosen before and after."""

    def kernels_save(itemsize, layouts, count):
        size = sum(math.prod(shape) for shape, _ in layouts) * itemsize * count
        return -math.inf if size < least * len(layouts) else math.inf

    gs.clear_caches()
    monkeypatch.setattr(choice, "kernels_save", kernels_save)
    monkeypatch.setattr(choice, "torch_is_faster", lambda *arguments, **named: False)
    monkeypatch.setattr(choice, "torch_joins_faster", lambda *arguments, **named: False)
    yield
    gs.clear_caches()


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
    (folder / "calls.cpp").write_text("#include <Python.h>\n#include <numpy/arrayobject.h>\n")
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
    """Print one line per campaign, and one per reason for which tests were skipped, where pytest has one per place."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, text in getattr(report, "user_properties", ()):
                if name == "campaign":
                    terminalreporter.write_line(f"campaign {text}")
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
