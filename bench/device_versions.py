"""What the check of a device ran on: versions of packages, CUDA and the device, and what is missing."""

import importlib.util
import json
import traceback

PACKAGES = ("array_api_strict", "hypothesis", "ml_dtypes", "onnx", "onnxruntime", "pytest", "torch")


def main() -> None:
    """Print it; what fails is printed too, and the rest is still tried."""
    for show in (_versions, _device, _compiler, _missing):
        try:
            print(show(), flush=True)
        except Exception:  # without CuPy, for example
            traceback.print_exc()


def _versions() -> str:
    from bench.machine import machine
    from gpuslice.config import describe_config

    return f"{describe_config()}\n{json.dumps(machine(), indent=1)}"


def _device() -> str:
    from bench.machine import gpu

    return json.dumps(gpu(), indent=1)


def _compiler() -> str:
    import cupy

    nvrtc = cupy.cuda.nvrtc
    return f"CuPy {cupy.__version__}, NVRTC {nvrtc.getVersion()}, which compiles for {nvrtc.getSupportedArchs()}"


def _missing() -> str:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"packages that are not installed: {', '.join(missing) or 'none'}"


if __name__ == "__main__":
    main()
