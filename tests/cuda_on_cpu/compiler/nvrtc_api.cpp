// NVRTC's interface as CuPy calls it. build.py names the build.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "compile.h"

using cuda_on_cpu::Program;

namespace {

enum Result { kSuccess = 0, kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6, kNameNotValid = 10 };

// Options that CuPy always passes and that mean nothing here.
constexpr const char* kIgnored[] = {"-arch=", "-ftz=", "--device-as-default-execution-space"};
// The architectures that it says it compiles for.
constexpr int kArchitectures[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
constexpr const char* kPassed[] = {"-I", "-D", "-U", "-std=", "--std="};

template <size_t N>
bool begins_with_one_of(const std::string& option, const char* const (&prefixes)[N]) {
  for (const char* prefix : prefixes)
    if (option.rfind(prefix, 0) == 0) return true;
  return false;
}

// CuPy compiles an empty source once to learn the compiler's version, which is in the keys of its cache of kernels.
std::string ptx() { return "// cuda_on_cpu " BUILD "\n"; }

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "NVRTC_SUCCESS";
    case kInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidOption:
      return "NVRTC_ERROR_INVALID_OPTION";
    case kCompilation:
      return "NVRTC_ERROR_COMPILATION";
    case kNameNotValid:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    default:
      return "NVRTC_ERROR unknown";
  }
}

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 2;
  return kSuccess;
}

int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return kSuccess;
}

int nvrtcGetSupportedArchs(int* given) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), given);
  return kSuccess;
}

int nvrtcCreateProgram(Program** program, const char* source, const char* name, int headers, const char* const*,
                       const char* const*) {
  if (headers) return kInvalidInput;
  *program = new Program{source, name && *name ? name : "default_program", "", "", {}};
  return kSuccess;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}

int nvrtcAddNameExpression(Program* program, const char* expression) {
  program->expressions.push_back(expression);
  return kSuccess;
}

int nvrtcGetLoweredName(Program* program, const char* expression, const char** name) {
  for (const std::string& known : program->expressions)
    if (known == expression) return *name = known.c_str(), kSuccess;
  return kNameNotValid;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  std::vector<std::string> passed;
  for (const std::string option : std::vector<std::string>(options, options + count)) {
    if (begins_with_one_of(option, kPassed)) {
      passed.push_back(option);
    } else if (!begins_with_one_of(option, kIgnored)) {
      program->log = "cuda_on_cpu does not know the option " + option;
      return kInvalidOption;
    }
  }
  if (program->source.empty() || cuda_on_cpu::compile(program, passed)) return kSuccess;
  return kCompilation;
}

int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return kSuccess;
}

int nvrtcGetProgramLog(Program* program, char* log) {
  memcpy(log, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}

int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->image.size();
  return kSuccess;
}

int nvrtcGetCUBIN(Program* program, char* image) {
  memcpy(image, program->image.data(), program->image.size());
  return kSuccess;
}

int nvrtcGetPTXSize(Program*, size_t* bytes) {
  *bytes = ptx().size() + 1;
  return kSuccess;
}

int nvrtcGetPTX(Program*, char* text) {
  memcpy(text, ptx().c_str(), ptx().size() + 1);
  return kSuccess;
}
}
