// CUDA's runtime interface to streams and events.

#include <chrono>
#include <set>

#include "api.h"
#include "stream.h"

using cuda_on_cpu::call;
using cuda_on_cpu::Stream;

namespace {

struct Event {
  unsigned flags;
  bool recorded = false, captured = false;
  std::chrono::steady_clock::time_point time;
};

std::set<Event*> events;

cudaError_t check_event(cudaEvent_t event) {
  const auto found = events.find(reinterpret_cast<Event*>(event));
  if (found == events.end()) return cudaErrorInvalidResourceHandle;
  return (*found)->captured ? cudaErrorCapturedEvent : cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&] {
    *stream = reinterpret_cast<cudaStream_t>(cuda_on_cpu::create_stream(flags, priority));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    const bool found = cuda_on_cpu::destroy_stream(reinterpret_cast<Stream*>(stream));
    return found ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] { return cuda_on_cpu::may_synchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call([&] {
    const Stream* found = cuda_on_cpu::find_stream(stream);
    if (found) *flags = found->flags;
    return found ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call([&] {
    const Stream* found = cuda_on_cpu::find_stream(stream);
    if (found) *priority = found->priority;
    return found ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

// Streams work at once, so there is nothing to wait for; captures that spread to other streams are not emulated.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    const Stream* found = cuda_on_cpu::find_stream(stream);
    const cudaError_t error = found ? check_event(event) : cudaErrorInvalidResourceHandle;
    return error == cudaErrorCapturedEvent || (found && found->capture) ? cudaErrorNotSupported : error;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] {
    *event = reinterpret_cast<cudaEvent_t>(*events.insert(new Event{flags}).first);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    auto* given = reinterpret_cast<Event*>(event);
    if (!events.erase(given)) return cudaErrorInvalidResourceHandle;
    delete given;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] {
    auto* given = reinterpret_cast<Event*>(event);
    const Stream* found = cuda_on_cpu::find_stream(stream);
    if (!found || !events.count(given)) return cudaErrorInvalidResourceHandle;
    given->recorded = true;
    given->captured = found->capture != nullptr;
    given->time = std::chrono::steady_clock::now();
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&] { return check_event(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call([&] {
    if (const cudaError_t error = check_event(begin)) return error;
    if (const cudaError_t error = check_event(end)) return error;
    const auto *first = reinterpret_cast<Event*>(begin), *last = reinterpret_cast<Event*>(end);
    const bool timed = !((first->flags | last->flags) & cudaEventDisableTiming);
    if (!timed || !first->recorded || !last->recorded) return cudaErrorInvalidResourceHandle;
    *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
    return cudaSuccess;
  });
}
}
