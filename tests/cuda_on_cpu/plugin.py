"""Runs the gpu tests on a CPU: ``pytest -m gpu --cuda-on-cpu=FOLDER``, with the folder that build.py made."""

from pathlib import Path

import pytest
from cuda_on_cpu.build import CUPY, Unfit, is_built
from cuda_on_cpu.load import load


class CudaOnCpu:
    """The report of a run with the option, and the reason if it cannot run."""

    def __init__(self, folder):
        self.folder = folder
        self.reason = unfit(folder)
        if self.reason is None:
            self.state = load(folder).cuda_on_cpu_description().decode()

    def pytest_report_header(self):
        """Return a line that says that no GPU ran."""
        if self.reason is not None:
            return f"cuda-on-cpu: no gpu test runs: {self.reason}"
        return f"cuda-on-cpu: CuPy {CUPY} on a CPU: no GPU ran; {self.state}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        """Skip the gpu tests if CuPy cannot run on the CPU."""
        if self.reason is not None and item.get_closest_marker("gpu"):
            pytest.skip(self.reason)


def unfit(folder):
    """Return why CuPy cannot run on what a folder holds; None if it can."""
    try:
        return None if is_built(folder) else f"{folder} is not what build.py makes here: run it"
    except Unfit as reason:
        return str(reason)


def pytest_addoption(parser):
    """Add the option."""
    parser.addoption("--cuda-on-cpu", metavar="FOLDER", type=Path, help="run the gpu tests on a CPU; see cuda_on_cpu/")


def pytest_configure(config):
    """Load CuPy before anything imports it."""
    folder = config.getoption("--cuda-on-cpu")
    if folder is not None:
        config.pluginmanager.register(CudaOnCpu(folder.resolve()), "cuda-on-cpu")
