"""Every runner of every device."""

from bench import arrays, models, tensors
from bench.runner import Runner

ROOF, OURS = "copy", "gpuslice"

RUNNERS = [
    Runner(ROOF, "cpu", (), arrays.roof_into, arrays.roof_fresh),
    Runner(OURS, "cpu", (), arrays.ours_into, arrays.ours_fresh),
    Runner("NumPy", "cpu", (), arrays.numpy_into, arrays.fresh_copies),
    Runner("PyTorch", "cpu", ("torch",), tensors.into, tensors.fresh),
    Runner("onnxruntime", "cpu", ("onnx", "onnxruntime"), models.runtime_into, models.runtime_fresh),
    Runner("onnx.reference", "cpu", ("onnx",), models.reference_into, models.reference_fresh),
    Runner(ROOF, "cuda", ("cupy",), arrays.roof_into, arrays.roof_fresh),
    Runner(OURS, "cuda", ("cupy",), arrays.ours_into, arrays.ours_fresh),
    Runner("CuPy", "cuda", ("cupy",), arrays.cupy_into, arrays.fresh_copies),
    Runner("PyTorch", "cuda", ("cupy", "torch"), tensors.into, tensors.fresh),
    Runner("onnxruntime", "cuda", ("cupy", "onnx", "onnxruntime"), models.runtime_into, models.runtime_fresh),
]
