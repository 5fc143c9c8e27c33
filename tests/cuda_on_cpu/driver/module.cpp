// Modules and launches; see module.h.

#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "settings.h"
#include "stream.h"

namespace cuda_on_cpu {

namespace {

// The bytes that an ELF file says it has: its section headers come last.
size_t image_bytes(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return header->e_shoff + size_t{header->e_shentsize} * header->e_shnum;
}

// Copies of a launch's arguments. The caller keeps its own only until the launch returns.
class Arguments {
 public:
  Arguments(const emulated::Kernel& kernel, void** given) {
    for (size_t i = 0; i < kernel.count; ++i) {
      const size_t room = (kernel.sizes[i] / emulated::kArgumentAlignment + 1) * emulated::kArgumentAlignment;
      addresses_.push_back(aligned_alloc(emulated::kArgumentAlignment, room));
      memcpy(addresses_.back(), given[i], kernel.sizes[i]);
    }
  }
  Arguments(const Arguments&) = delete;
  ~Arguments() { std::for_each(addresses_.begin(), addresses_.end(), free); }

  void** data() { return addresses_.data(); }

 private:
  std::vector<void*> addresses_;
};

void run_grid(const emulated::Kernel& kernel, Shape shape, void** arguments) {
  static emulated::Block runner;
  static std::mt19937 random(settings().shuffle.value_or(0));
  emulated::block_size = shape.block;
  emulated::grid_size = shape.grid;
  std::vector<emulated::Place> order = emulated::threads_of(shape.block);
  for (const emulated::Place& block : emulated::threads_of(shape.grid)) {
    emulated::block = block;
    if (settings().shuffle) std::shuffle(order.begin(), order.end(), random);
    runner.run(order, [&] { kernel.run(arguments); });
  }
}

bool is_possible(Shape shape) {
  const auto [grid, block] = shape;
  return grid.x && grid.y && grid.z && block.x && block.y && block.z && grid.x <= 0x7FFFFFFF && grid.y <= 0xFFFF &&
         grid.z <= 0xFFFF && block.z <= 64 && size_t{block.x} * block.y * block.z <= 1024;
}

}  // namespace

void* load_module(const void* image) {
  // Each file has its own name: for a name it knows, dlopen returns the library it has loaded.
  std::string path = std::filesystem::temp_directory_path() / "cuda-on-cpu-XXXXXX";
  const int file = mkstemp(path.data());
  const size_t bytes = image_bytes(image);
  void* module = nullptr;
  if (bytes && file >= 0 && write(file, image, bytes) == static_cast<ssize_t>(bytes)) {
    module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) fprintf(stderr, "a kernel does not load: %s\n", dlerror());
  }
  close(file);
  unlink(path.c_str());
  return module;
}

const emulated::Kernel* find_kernel(void* module, const char* name) {
  const auto* kernel = static_cast<const emulated::Kernel*>(dlsym(module, emulated::kTable));
  for (; kernel && kernel->name; ++kernel)
    if (strcmp(kernel->name, name) == 0) return kernel;
  return nullptr;
}

cudaError_t launch(const emulated::Kernel* kernel, Shape shape, cudaStream_t stream, void** arguments) {
  if (!is_possible(shape)) return cudaErrorInvalidValue;
  const auto copied = std::make_shared<Arguments>(*kernel, arguments);
  return enqueue(stream, [=] {
    run_grid(*kernel, shape, copied->data());
    return cudaSuccess;
  });
}

}  // namespace cuda_on_cpu
