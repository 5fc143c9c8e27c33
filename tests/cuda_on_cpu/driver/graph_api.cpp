// CUDA's runtime interface to captures and graphs.

#include <set>
#include <utility>

#include "api.h"
#include "stream.h"

using cuda_on_cpu::call;
using cuda_on_cpu::enqueue;
using cuda_on_cpu::Graph;

namespace {

std::set<Graph*> graphs;  // executable ones too

cudaError_t destroy_graph(void* handle) {
  auto* graph = static_cast<Graph*>(handle);
  if (!graphs.erase(graph)) return cudaErrorInvalidValue;
  delete graph;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&] { return cuda_on_cpu::begin_capture(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    Graph captured;
    *graph = nullptr;
    if (const cudaError_t error = cuda_on_cpu::end_capture(stream, &captured)) return error;
    *graph = reinterpret_cast<cudaGraph_t>(*graphs.insert(new Graph(std::move(captured))).first);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] { return cuda_on_cpu::capture_status(stream, status); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call([&] {
    auto* given = reinterpret_cast<Graph*>(graph);
    if (!graphs.count(given)) return cudaErrorInvalidValue;
    *executable = reinterpret_cast<cudaGraphExec_t>(*graphs.insert(new Graph(*given)).first);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return call([&] { return graphs.count(reinterpret_cast<Graph*>(executable)) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&] {
    auto* given = reinterpret_cast<Graph*>(executable);
    if (!graphs.count(given)) return cudaErrorInvalidValue;
    return enqueue(stream, [work = *given] {
      for (const auto& item : work)
        if (const cudaError_t error = item()) return error;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] { return destroy_graph(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&] { return destroy_graph(executable); });
}
}
