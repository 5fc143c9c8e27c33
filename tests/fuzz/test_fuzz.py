"""A quick share of the fuzz, and proof that it would see a broken kernel. ``nox -s fuzz`` runs more."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from build import CAPACITIES, build, sanitized
from mutants import MUTANTS, write_mutant

from gpuslice.engine.plan import KERNELS, kernel_sources

FUZZ = Path(__file__).parent / "fuzz.py"
COUNT = 3000

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="the sanitized kernels are built by g++ on Linux"
)


def run(folder, *more, environment):
    """Run the fuzz on the libraries of a folder."""
    command = [sys.executable, str(FUZZ), "--folder", str(folder), "--seed", "1", "--count", str(COUNT), *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def environment():
    """What Python needs to load sanitized libraries."""
    found = sanitized()
    if found is None:
        pytest.skip("g++ has no sanitizers here")
    return found


@pytest.fixture(scope="module")
def ran(environment, tmp_path_factory):
    """The fuzz on the kernels and on each mutant, compiled and run several at a time."""
    scratch = tmp_path_factory.mktemp("mutants")

    def run_mutant(name):
        folder = scratch / str(list(MUTANTS).index(name))
        kinds = write_mutant(name, kernel_sources.folder(), folder)
        return run(build(folder, kinds), "--only", *kinds, environment=environment)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        mutants = {name: pool.submit(run_mutant, name) for name in MUTANTS}
        done = run(build(), environment=environment)
        return done, {name: future.result() for name, future in mutants.items()}


def test_kernels_copy_every_byte_and_touch_no_other(ran):
    done, _ = ran
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert {"rows", "tiles", "pixel_tiles", "pixel_rows", "planes", "rearranged", "sparse"} <= set(result["launches"])
    tables = {f"{bits} bits, tables of {size}" for bits, sizes in CAPACITIES.items() for size in sizes}
    assert tables <= set(result["launches"])
    assert set(result["kernels"]) == {kernel.name for kernel in KERNELS}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_kernel_is_seen(name, ran):
    _, mutants = ran
    said = mutants[name].stderr
    assert mutants[name].returncode != 0
    assert "differs" in said or "Sanitizer" in said or "misaligned access" in said, said[-3000:]
