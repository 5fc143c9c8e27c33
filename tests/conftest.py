"""Fixtures, the gpu mark, and one line per reason for the tests that were skipped."""

from collections import Counter

import pytest
from libraries import WHOLE_SUITE

from gpuslice.engine import choice

pytest.register_assert_rewrite("helpers")
pytest_plugins = ["cuda_on_cpu.plugin"]  # --cuda-on-cpu


@pytest.fixture(params=[library.param for library in WHOLE_SUITE])
def xp(request):
    """The namespace of each array library in turn."""
    return request.param.xp


@pytest.fixture
def kernels_from_512_bytes(monkeypatch):
    """Have kernels copy arrays that NumPy otherwise copies faster, so that the arrays of a test can be small."""
    monkeypatch.setattr(choice, "SMALL_BYTES", 1 << 9)


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
