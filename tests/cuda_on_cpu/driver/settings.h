// What the environment asks for, read once.
#pragma once

#include <cstddef>
#include <optional>

namespace cuda_on_cpu {

struct Settings {
  std::optional<unsigned> shuffle;  // CUDA_ON_CPU_SHUFFLE: the seed of the order in which a block's threads run
  bool guard;                       // CUDA_ON_CPU_GUARD: whether each allocation ends at a page that is not mapped
  size_t memory;                    // CUDA_ON_CPU_MEMORY: bytes of memory of each device
  int devices;                      // CUDA_ON_CPU_DEVICES: how many there are
};

const Settings& settings();

}  // namespace cuda_on_cpu
