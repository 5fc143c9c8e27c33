"""Fixtures: the array libraries that the suite runs on."""

import importlib

import pytest

pytest_plugins = ["cuda_on_cpu.plugin"]  # --cuda-on-cpu

LIBRARIES = [
    pytest.param("numpy", id="numpy"),
    pytest.param("array_api_strict", id="strict"),
    pytest.param("cupy", id="cupy", marks=pytest.mark.gpu),
]


@pytest.fixture(params=LIBRARIES)
def xp(request):
    """The namespace of each array library in turn."""
    return importlib.import_module(request.param)


def pytest_runtest_setup(item):
    """Skip the gpu tests where there is no GPU, with the reason."""
    if item.get_closest_marker("gpu"):
        try:
            import cupy
        except ImportError:
            pytest.skip("CuPy is not installed")
        if not cupy.cuda.is_available():
            pytest.skip("no CUDA device: cupy.cuda.is_available() is False")
