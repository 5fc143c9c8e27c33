// NVRTC on g++: compiles CUDA C++ to a shared library for the CPU, which stands in for a cubin.
//
// Only CuPy calls this, with NVRTC's C interface. build.py says where the headers are and names the build.

#include <stdlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "kernel.h"

namespace {

namespace fs = std::filesystem;

enum Result { kSuccess = 0, kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6, kNameNotValid = 10 };

struct Program {
  std::string source, name, log, image;
  std::vector<std::string> expressions;
};

// What a kernel does not call goes, so that it may call what is not there.
constexpr const char* kFlags[] = {"-std=c++17",
                                  "-O1",
                                  "-w",
                                  "-fPIC",
                                  "-shared",
                                  "-fno-strict-aliasing",
                                  "-fvisibility=hidden",
                                  "-ffunction-sections",
                                  "-Wl,--gc-sections"};

// What CuPy always asks of device code, and nothing here.
constexpr const char* kIgnored[] = {"-arch=", "-ftz=", "--device-as-default-execution-space"};
constexpr const char* kPassed[] = {"-I", "-D", "-U", "-std=", "--std="};

template <size_t N>
bool begins_with_one_of(const std::string& option, const char* const (&prefixes)[N]) {
  for (const char* prefix : prefixes)
    if (option.rfind(prefix, 0) == 0) return true;
  return false;
}

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Quotes a word for C++ and for g++'s option files alike.
std::string quoted(const std::string& word) {
  std::string text = "\"";
  for (char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// A folder that is removed with all that is in it.
struct Scratch {
  fs::path path;

  Scratch() {
    char name[] = "/tmp/cuda-on-cpu-XXXXXX";
    if (mkdtemp(name)) path = name;
  }
  ~Scratch() { fs::remove_all(path); }
};

// The kernels that a module can be asked for: the extern "C" ones by name, instantiations by their expression.
std::vector<std::string> kernel_names(const Program& program) {
  static const std::regex kPlain(
      R"re(extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\()re");
  std::vector<std::string> names = program.expressions;
  const std::sregex_iterator end;
  for (std::sregex_iterator at(program.source.begin(), program.source.end(), kPlain); at != end; ++at)
    names.push_back((*at)[1]);
  return names;
}

// The source with what NVRTC knows by itself before it and the table of its kernels behind it.
std::string completed(const Program& program) {
  std::ostringstream text;
  text << "#include \"nvrtc_builtins.h\"\n#line 1 " << quoted(program.name) << '\n' << program.source;
  text << "\n#line 1 \"table of kernels\"\nextern \"C\" __attribute__((visibility(\"default\"))) emulated::Kernel "
       << emulated::kTable << "[] = {\n";
  for (const std::string& name : kernel_names(program))
    text << "emulated::describe<&" << name << ">(" << quoted(name) << "),\n";
  text << "{}};\n";
  return text.str();
}

// Runs g++ with the words of a file; gives whether it went well, and what it said.
bool run_compiler(const fs::path& words, std::string* said) {
  FILE* pipe = popen(("g++ @" + words.string() + " 2>&1").c_str(), "r");
  if (!pipe) return false;
  char part[4096];
  while (const size_t bytes = fread(part, 1, sizeof part, pipe)) said->append(part, bytes);
  return pclose(pipe) == 0;
}

Result compile(Program* program, const std::vector<std::string>& options) {
  const Scratch scratch;
  const fs::path source = scratch.path / "kernels.cpp", library = scratch.path / "kernels.so",
                 words = scratch.path / "options";
  std::ofstream(source) << completed(*program);
  std::ofstream list(words);
  for (const char* flag : kFlags) list << flag << '\n';
  list << "-I" << quoted(HEADERS) << '\n';
  for (const std::string& option : options) list << quoted(option) << '\n';
  list << quoted(source) << "\n-o\n" << quoted(library) << '\n';
  list.close();
  if (!run_compiler(words, &program->log)) return kCompilation;
  program->image = contents(library);
  return kSuccess;
}

// CuPy compiles nothing once to learn the compiler's version, which is part of what it keeps kernels under.
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
  return program->source.empty() ? kSuccess : compile(program, passed);
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
