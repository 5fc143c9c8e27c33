// CUDA's driver interface as far as CuPy calls it: contexts, modules and launches.

#include "api.h"
#include "module.h"

using cuda_on_cpu::driver_call;
using emulated::Kernel;

namespace {
char context;  // the only one; callers need its address alone
}

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = cuda_on_cpu::kVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* current) {
  *current = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return driver_call([&] {
    *module = static_cast<CUmodule>(cuda_on_cpu::load_module(image));
    return *module ? cudaSuccess : cudaErrorInvalidKernelImage;
  });
}

// A captured graph may still need it, so it stays loaded.
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return driver_call([&] {
    const Kernel* found = cuda_on_cpu::find_kernel(module, name);
    *function = reinterpret_cast<CUfunction>(const_cast<Kernel*>(found));
    return found ? cudaSuccess : cudaErrorSymbolNotFound;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments,
                        void** extra) {
  return driver_call([&] {
    if (shared_bytes || extra) return cudaErrorNotSupported;
    const cuda_on_cpu::Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    return cuda_on_cpu::launch(reinterpret_cast<const Kernel*>(function), shape, stream, arguments);
  });
}
}
