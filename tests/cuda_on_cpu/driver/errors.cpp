// Names and texts of the errors that occur here, and what entry points return that are not emulated.

#include <cstdio>

#include "api.h"

namespace {

struct Error {
  cudaError_t code;
  const char *runtime_name, *driver_name, *text;
};

constexpr Error kErrors[] = {
    {cudaSuccess, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE",
     "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const Error& described(int code) {
  for (const Error& error : kErrors)
    if (error.code == code) return error;
  static constexpr Error kUnknown{cudaErrorUnknown, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"};
  return kUnknown;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) { return described(error).runtime_name; }
const char* cudaGetErrorString(cudaError_t error) { return described(error).text; }

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = described(error).driver_name;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = described(error).text;
  return CUDA_SUCCESS;
}

// For the entry points that build.py generates: every one that is not written here.
int cuda_on_cpu_missing(const char* name) {
  fprintf(stderr, "%s is not emulated: see tests/cuda_on_cpu\n", name);
  return cudaErrorNotSupported;
}
}
