// What the environment asks for; see settings.h.

#include "settings.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace cuda_on_cpu {

namespace {

constexpr size_t kMemory = size_t{4} << 30;
constexpr size_t kDevices = 2;

std::optional<size_t> number(const char* name) {
  const char* text = getenv(name);
  if (!text || !*text) return std::nullopt;
  char* end;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end) {
    fprintf(stderr, "%s must be a number; got %s\n", name, text);
    exit(2);
  }
  return value;
}

}  // namespace

const Settings& settings() {
  static const Settings kSettings{number("CUDA_ON_CPU_SHUFFLE"), number("CUDA_ON_CPU_GUARD").value_or(0) != 0,
                                  number("CUDA_ON_CPU_MEMORY").value_or(kMemory),
                                  static_cast<int>(number("CUDA_ON_CPU_DEVICES").value_or(kDevices))};
  return kSettings;
}

}  // namespace cuda_on_cpu

extern "C" {

// For plugin.py: whether there are guard pages, and how the threads run.
int cuda_on_cpu_guards() { return cuda_on_cpu::settings().guard; }

const char* cuda_on_cpu_description() {
  const auto& [shuffle, guard, memory, devices] = cuda_on_cpu::settings();
  static const std::string kText =
      (shuffle ? "threads shuffled (seed " + std::to_string(*shuffle) + ")" : std::string("threads in order")) +
      (guard ? ", guard pages" : ", no guard pages") + ", " + std::to_string(devices) + " devices";
  return kText.c_str();
}
}
