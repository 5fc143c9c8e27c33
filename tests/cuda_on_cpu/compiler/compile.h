// Compiles CUDA C++ with g++ to a shared library for the CPU, which stands in for a cubin.
#pragma once

#include <string>
#include <vector>

namespace cuda_on_cpu {

struct Program {
  std::string source, name, log, image;
  std::vector<std::string> expressions;
};

// Fills in a program's log and, if it compiles, its image.
bool compile(Program* program, const std::vector<std::string>& options);

}  // namespace cuda_on_cpu
