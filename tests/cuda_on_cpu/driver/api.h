// What all entry points of the driver and the runtime share.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <mutex>

namespace cuda_on_cpu {

constexpr int kVersion = 13020;  // of CUDA

// Held by every call, so that calls run one at a time.
inline std::mutex& mutex() {
  static std::mutex kMutex;
  return kMutex;
}

// The last error of this thread, until it is asked for.
inline thread_local cudaError_t last_error;

// The current device of this thread.
inline thread_local int current_device;

template <class Function>
cudaError_t call(Function&& function) {
  const std::lock_guard<std::mutex> lock(mutex());
  const cudaError_t error = function();
  if (error) last_error = error;
  return error;
}

// The driver's errors have the runtime's numbers.
template <class Function>
CUresult driver_call(Function&& function) {
  const std::lock_guard<std::mutex> lock(mutex());
  return static_cast<CUresult>(function());
}

}  // namespace cuda_on_cpu
