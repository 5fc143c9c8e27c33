"""The project's tasks, each in an environment of its own: ``nox -s lint types tests``."""

import os
import secrets
import shutil
import sys
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True

CLANG_FORMAT = "clang-format==23.1.5"
# The wheels on PyPI bring CUDA's libraries, which are gigabytes. CI has the address of those that do not.
TORCH_WHEELS = os.environ.get("TORCH_WHEELS", "").split()
KERNEL_SUFFIXES = (".cuh", ".cu", ".cpp", ".h")


@nox.session
def lint(session):
    """Check style: ruff (rules and format), clang-format on kernels/. ``-- --fix`` corrects what it can."""
    session.install("ruff==0.17.6", CLANG_FORMAT)
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    tracked = session.run("git", "ls-files", "kernels", "tests", "bench", external=True, silent=True) or ""
    sources = [path for path in tracked.split() if path.endswith(KERNEL_SUFFIXES)]
    if sources:
        session.run("clang-format", *(["-i"] if fix else ["--dry-run", "--Werror"]), *sources)


@nox.session
def types(session):
    """Check types: mypy --strict on gpuslice/, and whether all public names of the installed package have types."""
    # basedpyright brings pyright and Node.js; PyPI's pyright downloads both when it runs.
    tools = ["mypy==2.4.1", "basedpyright==1.40.2"]
    session.install(*tools, ".[onnx]", env={"GPUSLICE_KERNELS": "off"})
    session.run("mypy")
    session.run("basedpyright", "--verifytypes", "gpuslice", "--ignoreexternal")


@nox.session
def tests(session):
    """Run the test suite, with pytest's arguments after ``--``."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def lowest(session):
    """Run the test suite with the oldest dependencies that pyproject.toml allows."""
    session.install("uv==0.13.*")
    oldest = ["--resolution", "lowest-direct", "--python", session.virtualenv.location]
    session.run("uv", "pip", "install", *oldest, "-e", ".[test]", env={"GPUSLICE_KERNELS": "require"})
    # Of ONNX's own tests old versions have fewer than this one counts.
    session.run("pytest", "--deselect", "tests/test_official.py::test_no_test_is_missed", *session.posargs)


# What is tested on every array library; the other tests are NumPy's, CuPy's or of no library.
BY_LIBRARY = ["pytest", "tests/test_libraries.py", "tests/test_cases.py"]


@nox.session
def strict(session):
    """Run the tests of array-api-strict by three versions of the standard, without anything that is optional in it."""
    session.install("-e", ".[test]")
    flags = {"BOOLEAN_INDEXING": "False", "DATA_DEPENDENT_SHAPES": "False", "ENABLED_EXTENSIONS": ""}
    for version in ("2023.12", "2024.12", "2025.12"):
        environment = {f"ARRAY_API_STRICT_{name}": value for name, value in flags.items()}
        environment["ARRAY_API_STRICT_API_VERSION"] = version
        session.run("pytest", "-k", "array_api_strict", *session.posargs, env=environment)


@nox.session(name="jax")
def jax_arrays(session):
    """Run the tests of JAX, first with integers and floats of 32 bits, as it has by default, then with 64."""
    session.install("-e", ".[test]", "jax[cpu]>=0.10")
    tests = [*BY_LIBRARY, "tests/test_jax.py", "tests/test_readme.py", "-k", "jax", *session.posargs]
    for wide in ("0", "1"):
        session.run(*tests, env={"JAX_ENABLE_X64": wide, "JAX_PLATFORMS": "cpu"})


@nox.session
def dask(session):
    """Run the tests of Dask, on a cluster of processes too, and of libraries with a few users: sparse, mlx, ndonnx."""
    session.install("-e", ".[test]", "dask[array,distributed]>=2026.1", "sparse", "mlx[cpu]", "ndonnx", "zarr")
    names = "dask or sparse or mlx or ndonnx or zarr"
    tests = [*BY_LIBRARY, "tests/test_dask.py", "tests/test_readme.py", "-k", names]
    session.run(*tests, *session.posargs, env={"GPUSLICE_SLOW_TESTS": "1"})


@nox.session
def torch(session):
    """Run the tests of PyTorch's tensors, and those that run on every library, with PyTorch for CPUs."""
    session.install("-e", ".[test]", "torch==2.13.0", *TORCH_WHEELS)
    session.run("pytest", "-k", "torch", "tests", *session.posargs)


@nox.session
def models(session):
    """Run real models, and print their nodes and parts beside onnxruntime; fetches 290 MB of packages for the models.

    The options of ``python -m bench models`` follow ``--``, such as ``--output FILE``.
    """
    session.install("-e", ".[test]")
    folder = session.create_tmp()
    wheels = ["--no-deps", "--only-binary", ":all:", "--dest", folder]
    session.run("python", "-m", "pip", "download", "--quiet", *wheels, "-r", "bench/models.txt")
    session.run("pytest", "tests/models", "--models", folder)
    session.run("python", "-m", "bench", "models", "--models", folder, *session.posargs)


@nox.session
def instantiations(session):
    """Compile every instantiation of the CUDA kernels by NVRTC and check the code; ``-- --quick`` compiles a few."""
    tools = ["nvidia-cuda-nvrtc==13.2.*", "nvidia-cuda-nvrtc-cu12==12.9.*", "nvidia-cuda-nvdisasm"]
    session.install(*nox.project.load_toml("pyproject.toml")["project"]["dependencies"], *tools)
    folder = session.virtualenv.location
    session.install("--target", f"{folder}/nvrtc-13.0", "--upgrade", "--no-deps", "nvidia-cuda-nvrtc==13.0.*")
    environment = {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), folder])}
    session.run("python", "tests/compile_check/check.py", *session.posargs, env=environment)


@nox.session
def fuzz(session):
    """Run random plans through the kernels under sanitizers: ``nox -s fuzz -- --seed 1 --count 100000``."""
    session.install("-e", ".", env={"GPUSLICE_KERNELS": "off"})  # it compiles kernels of its own
    session.run("python", "tests/fuzz/fuzz.py", *(session.posargs or ["--count", "100000"]))


@nox.session
def campaigns(session):
    """Run tests/campaigns/ a hundred times as long as pytest does, from a new seed; ``-- --seed 1 --rounds 10``."""
    session.install("-e", ".[test]")
    long = ["--seed", str(secrets.randbelow(1 << 32)), "--rounds", "100"]
    session.run("pytest", "tests/campaigns", *long, *session.posargs)


@nox.session
def mutants(session):
    """Change gpuslice/rules.py in some 400 ways; for each a test must fail, or tests/mutants/ says why none can."""
    session.install("-e", ".[test]", "mutmut==3.8.*", env={"GPUSLICE_KERNELS": "off"})
    shutil.rmtree("mutants", ignore_errors=True)
    session.run("mutmut", "run", silent=True)
    session.run("python", "tests/mutants/survivors.py")


@nox.session(venv_backend="none")
def kernels(session):
    """Compile kernels/ for the host into this checkout, and show what the compiler says: after each edit there."""
    session.run(sys.executable, "gpuslice/engine/host_build.py")


def build_cuda_on_cpu(session):
    """Install CuPy, build the emulated driver, and return the arguments of pytest that run the gpu tests on it."""
    session.install("cupy-cuda13x==14.2.0", "nvidia-cuda-runtime==13.2.*", "nvidia-cuda-crt==13.2.*")
    if TORCH_WHEELS:  # PyTorch with CUDA would look for a device of its own
        session.install("torch==2.13.0", *TORCH_WHEELS)
    session.install("cython==3.1.*", "setuptools>=77")
    folder = session.create_tmp()
    session.run("python", "tests/cuda_on_cpu/build.py", folder)
    return ["pytest", "-m", "gpu", f"--cuda-on-cpu={folder}"]


@nox.session
def coverage(session):
    """Print which lines and branches of gpuslice/ neither the test suite nor the gpu tests on a CPU reach."""
    session.install("-e", ".[test]", "coverage>=7.10", env={"GPUSLICE_KERNELS": "require"})
    gpu = build_cuda_on_cpu(session)
    session.run("coverage", "erase")
    # Coverage itself needs memory and files, so none may fail.
    chosen = "not kth_allocation_fails and not full_disk_is_said"
    session.run("coverage", "run", "-m", "pytest", "--ignore=tests/fuzz", "-k", chosen, *session.posargs)
    session.run("coverage", "run", "-m", *gpu, "tests", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def cuda_on_cpu(session):
    """Run the gpu tests on CuPy without a GPU, with shuffled threads and then with guard pages; tests/cuda_on_cpu/."""
    # The kernels for the host are not wanted.
    session.install("-e", ".[test]", "dask>=2026.1", env={"GPUSLICE_KERNELS": "off"})
    gpu = ["python", "-m", *build_cuda_on_cpu(session), *(session.posargs or ["tests"])]
    session.run(*gpu, env={"CUDA_ON_CPU_SHUFFLE": "1"})
    session.run(*gpu, "--ignore=tests/cuda_on_cpu", env={"CUDA_ON_CPU_GUARD": "1"})
