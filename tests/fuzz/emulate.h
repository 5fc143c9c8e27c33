// What emulate.cpp and kernels.cpp agree on: tables of emulated kernels.
#pragma once

#include <vector>

namespace emulated {

// Runs one thread of a kernel, whose place device.h tells.
using Kernel = void (*)(const void* parameters);

// The kernels for one width of the index and one capacity of the tables.
struct KernelTable {
  int bits;
  int capacity;
  Kernel (*find)(unsigned number);  // by the position in the list of kernels/shared.h; nullptr if it is not compiled
};

inline std::vector<KernelTable>& kernel_tables() {
  static std::vector<KernelTable> tables;
  return tables;
}

}  // namespace emulated
