// What the compiled kernels tell the driver: a table with one entry per kernel, which compiler/compile.cpp appends to
// the source.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace emulated {

struct Kernel {
  const char* name;
  void (*run)(void** arguments);  // one thread; the arguments' addresses are aligned to kArgumentAlignment
  size_t count;                   // of arguments
  const size_t* sizes;            // of each, in bytes
};

constexpr size_t kArgumentAlignment = 64;
constexpr char kTable[] = "emulated_kernels";  // its last entry has no name

template <auto Function, class = decltype(Function)>
struct Describe;

template <auto Function, class... Arguments>
struct Describe<Function, void (*)(Arguments...)> {
  static_assert(((alignof(Arguments) <= kArgumentAlignment) && ...));
  static constexpr size_t kCount = sizeof...(Arguments);
  static constexpr size_t kSizes[kCount + 1] = {sizeof(Arguments)...};

  template <size_t... I>
  static void call(void** arguments, std::index_sequence<I...>) {
    Function(*static_cast<std::remove_reference_t<Arguments>*>(arguments[I])...);
  }

  static void run(void** arguments) { call(arguments, std::index_sequence_for<Arguments...>{}); }
};

template <auto Function>
Kernel describe(const char* name) {
  using Description = Describe<Function>;
  return {name, Description::run, Description::kCount, Description::kSizes};
}

}  // namespace emulated
