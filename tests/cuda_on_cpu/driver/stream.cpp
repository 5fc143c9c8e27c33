// Streams that work at once, and what captures forbid; see stream.h.

#include "stream.h"

#include <map>
#include <set>
#include <utility>

#include "api.h"

namespace cuda_on_cpu {

namespace {

std::map<int, Stream> default_streams;  // by device
std::set<Stream*> streams;              // except the default ones

Stream& default_stream() {
  Stream& found = default_streams[current_device];
  found.device = current_device;
  return found;
}

// Makes every capture in conflict with a call invalid; returns whether there was one.
template <class Conflicts>
bool invalidate(Conflicts&& conflicts) {
  bool any = false;
  for (Stream* stream : streams) {
    if (!stream->capture || !conflicts(*stream)) continue;
    stream->capture->valid = false;
    any = true;
  }
  return any;
}

// Whether the current device's default stream waits for it.
bool is_blocking(const Stream& stream) {
  return stream.device == current_device && !(stream.flags & cudaStreamNonBlocking);
}

}  // namespace

Stream* create_stream(unsigned flags, int priority) {
  return *streams.insert(new Stream{flags, priority, current_device, nullptr}).first;
}

bool destroy_stream(Stream* stream) {
  if (!streams.erase(stream)) return false;
  delete stream;
  return true;
}

Stream* find_stream(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy) return &default_stream();
  const auto found = streams.find(reinterpret_cast<Stream*>(handle));
  return found == streams.end() ? nullptr : *found;
}

bool is_default(const Stream* stream) { return stream == &default_streams[stream->device]; }

cudaError_t enqueue(cudaStream_t handle, Work work) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (is_default(stream))
    if (const cudaError_t error = may_use_default_stream()) return error;
  if (!stream->capture) return work();
  if (!stream->capture->valid) return cudaErrorStreamCaptureInvalidated;
  stream->capture->graph.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (is_default(stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  stream->capture.reset(new Capture{mode, std::this_thread::get_id()});
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t handle, Graph* graph) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!stream->capture) return cudaErrorIllegalState;
  if (stream->capture->mode != cudaStreamCaptureModeRelaxed && stream->capture->thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  const std::unique_ptr<Capture> capture = std::move(stream->capture);
  if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
  *graph = std::move(capture->graph);
  return cudaSuccess;
}

cudaError_t capture_status(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (is_default(stream))
    for (const Stream* other : streams)
      if (other->capture && is_blocking(*other)) return cudaErrorStreamCaptureImplicit;
  *status = !stream->capture         ? cudaStreamCaptureStatusNone
            : stream->capture->valid ? cudaStreamCaptureStatusActive
                                     : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t may_synchronize(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (is_default(stream)) return may_use_default_stream();
  return invalidate([&](Stream& other) { return &other == stream; }) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t may_synchronize_device() {
  return invalidate([](Stream& stream) { return stream.device == current_device; }) ? cudaErrorStreamCaptureUnsupported
                                                                                    : cudaSuccess;
}

// The default stream waits for the blocking ones, and waiting for one that captures is an error.
cudaError_t may_use_default_stream() { return invalidate(is_blocking) ? cudaErrorStreamCaptureImplicit : cudaSuccess; }

cudaError_t may_call_unsafe() {
  const auto forbids = [](const Stream& stream) {
    const Capture& capture = *stream.capture;
    return capture.mode == cudaStreamCaptureModeGlobal ||
           (capture.mode == cudaStreamCaptureModeThreadLocal && capture.thread == std::this_thread::get_id());
  };
  return invalidate(forbids) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace cuda_on_cpu
