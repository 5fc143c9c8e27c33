// Streams, captures and graphs. Work is done when it is queued; a capture keeps it for a graph instead.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace cuda_on_cpu {

using Work = std::function<cudaError_t()>;
using Graph = std::vector<Work>;

struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool valid = true;
  Graph graph;
};

struct Stream {
  unsigned flags;
  int priority;
  int device;
  std::unique_ptr<Capture> capture;
};

Stream* create_stream(unsigned flags, int priority);
bool destroy_stream(Stream* stream);

// Returns the stream of a handle, which may be the default stream's of the current device, or null.
Stream* find_stream(cudaStream_t handle);
bool is_default(const Stream* stream);

// Does work, or keeps it if the stream captures.
cudaError_t enqueue(cudaStream_t handle, Work work);

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode);
cudaError_t end_capture(cudaStream_t handle, Graph* graph);
cudaError_t capture_status(cudaStream_t handle, cudaStreamCaptureStatus* status);

// Each fails, and makes captures invalid, if a capture forbids the host to do this.
cudaError_t may_synchronize(cudaStream_t handle);
cudaError_t may_synchronize_device();
cudaError_t may_use_default_stream();
cudaError_t may_call_unsafe();  // what may wait for the device, such as allocating

}  // namespace cuda_on_cpu
