// The devices: each an imagined sm_90, none of which reads the memory of another.

#include <cstdio>
#include <map>

#include "api.h"
#include "memory.h"
#include "settings.h"
#include "stream.h"

namespace cuda_on_cpu {

namespace {

cudaError_t check_device(int device) {
  return device >= 0 && device < settings().devices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaDeviceProp properties() {
  cudaDeviceProp given{};
  snprintf(given.name, sizeof given.name, "CPU");
  given.totalGlobalMem = settings().memory;
  given.major = 9;
  given.warpSize = 32;
  given.maxThreadsPerBlock = given.maxThreadsDim[0] = given.maxThreadsDim[1] = 1024;
  given.maxThreadsDim[2] = 64;
  given.maxGridSize[0] = 0x7FFFFFFF;
  given.maxGridSize[1] = given.maxGridSize[2] = 0xFFFF;
  given.sharedMemPerBlock = 48 << 10;
  given.multiProcessorCount = 2;
  given.maxThreadsPerMultiProcessor = 2048;
  given.unifiedAddressing = 1;
  return given;
}

// The attributes that CuPy asks for. The others are unknown.
cudaError_t attribute_of_device(int* value, cudaDeviceAttr attribute) {
  static const cudaDeviceProp kDevice = properties();
  static const std::map<cudaDeviceAttr, int> kValues = {
      {cudaDevAttrComputeCapabilityMajor, kDevice.major},
      {cudaDevAttrComputeCapabilityMinor, kDevice.minor},
      {cudaDevAttrWarpSize, kDevice.warpSize},
      {cudaDevAttrMaxThreadsPerBlock, kDevice.maxThreadsPerBlock},
      {cudaDevAttrMultiProcessorCount, kDevice.multiProcessorCount},
      {cudaDevAttrClockRate, 0},
      {cudaDevAttrMemoryClockRate, 0},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrGpuOverlap, 0},
      {cudaDevAttrMaxTexture1DLinearWidth, 0},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, 0},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrMemoryPoolsSupported, 0},
  };
  const auto found = kValues.find(attribute);
  if (found == kValues.end()) return cudaErrorInvalidValue;
  *value = found->second;
  return cudaSuccess;
}

}  // namespace

}  // namespace cuda_on_cpu

extern "C" {

using cuda_on_cpu::call;

cudaError_t cudaPeekAtLastError() { return cuda_on_cpu::last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cuda_on_cpu::last_error;
  cuda_on_cpu::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = cuda_on_cpu::kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = cuda_on_cpu::settings().devices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = cuda_on_cpu::current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return call([&] {
    const cudaError_t error = cuda_on_cpu::check_device(device);
    if (!error) cuda_on_cpu::current_device = device;
    return error;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* given, int device) {
  return call([&] {
    *given = cuda_on_cpu::properties();
    return cuda_on_cpu::check_device(device);
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&] {
    const cudaError_t error = cuda_on_cpu::check_device(device);
    return error ? error : cuda_on_cpu::attribute_of_device(value, attribute);
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int length, int device) {
  return call([&] {
    snprintf(name, static_cast<size_t>(length), "0000:%02x:00.0", device);
    return cuda_on_cpu::check_device(device);
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&] {
    *can = 0;
    const cudaError_t error = cuda_on_cpu::check_device(device);
    return error ? error : cuda_on_cpu::check_device(peer);
  });
}

cudaError_t cudaDeviceSynchronize() { return call(cuda_on_cpu::may_synchronize_device); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&] {
    *free = cuda_on_cpu::free_bytes();
    *total = cuda_on_cpu::settings().memory;
    return cudaSuccess;
  });
}
}
