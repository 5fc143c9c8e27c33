// CUDA's driver interface as far as CuPy calls it: contexts, modules and launches.

#include <map>
#include <set>

#include "api.h"
#include "module.h"
#include "stream.h"

using cuda_on_cpu::driver_call;
using emulated::Kernel;

namespace {

// A device has one context. Callers need its address alone.
std::map<int, char> contexts;

// A kernel of a module that was loaded on a device.
struct Function {
  const Kernel* kernel;
  int device;
  bool operator<(const Function& other) const {
    return kernel != other.kernel ? kernel < other.kernel : device < other.device;
  }
};

std::map<CUmodule, int> devices_of_modules;
std::set<Function> functions;

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = cuda_on_cpu::kVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* current) {
  return driver_call([&] {
    *current = reinterpret_cast<CUcontext>(&contexts[cuda_on_cpu::current_device]);
    return cudaSuccess;
  });
}

CUresult cuCtxSetCurrent(CUcontext wanted) {
  return driver_call([&] {
    for (auto& [device, context] : contexts)
      if (reinterpret_cast<CUcontext>(&context) == wanted) return cuda_on_cpu::current_device = device, cudaSuccess;
    return cudaErrorInvalidValue;
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return driver_call([&] {
    if (const cudaError_t error = cuda_on_cpu::may_call_unsafe()) return error;
    *module = static_cast<CUmodule>(cuda_on_cpu::load_module(image));
    if (*module) devices_of_modules[*module] = cuda_on_cpu::current_device;
    return *module ? cudaSuccess : cudaErrorInvalidKernelImage;
  });
}

// A captured graph may still need it, so it stays loaded.
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return driver_call([&] {
    const Kernel* found = cuda_on_cpu::find_kernel(module, name);
    if (!found) return cudaErrorSymbolNotFound;
    const Function& made = *functions.insert({found, devices_of_modules[module]}).first;
    *function = reinterpret_cast<CUfunction>(const_cast<Function*>(&made));
    return cudaSuccess;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments,
                        void** extra) {
  return driver_call([&] {
    if (shared_bytes || extra) return cudaErrorNotSupported;
    const auto* given = reinterpret_cast<const Function*>(function);
    const cuda_on_cpu::Stream* found = cuda_on_cpu::find_stream(stream);
    // A kernel, its stream and the current device belong together.
    if (!found || found->device != cuda_on_cpu::current_device || given->device != found->device)
      return cudaErrorInvalidResourceHandle;
    const cuda_on_cpu::Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    return cuda_on_cpu::launch(given->kernel, shape, stream, arguments);
  });
}
}
