// Compiling with g++; see compile.h. build.py says where the headers are.

#include "compile.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "kernel.h"

namespace cuda_on_cpu {

namespace {

namespace fs = std::filesystem;

// Functions that no kernel calls are removed, so that they may call what does not exist here.
constexpr const char* kFlags[] = {"-std=c++17",
                                  "-O1",
                                  "-w",
                                  "-fPIC",
                                  "-shared",
                                  "-fno-strict-aliasing",
                                  "-fvisibility=hidden",
                                  "-ffunction-sections",
                                  "-Wl,--gc-sections"};

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

// A folder that is removed with everything in it.
struct Scratch {
  fs::path path;

  Scratch() {
    std::string name = fs::temp_directory_path() / "cuda-on-cpu-XXXXXX";
    if (mkdtemp(name.data())) path = name;
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

// The source, after what NVRTC declares by itself and before the table of its kernels.
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

// Runs g++ with the options in a file; returns whether it succeeded, and its output.
bool run_compiler(const fs::path& words, std::string* said) {
  FILE* pipe = popen(("g++ @" + words.string() + " 2>&1").c_str(), "r");
  if (!pipe) return false;
  char part[4096];
  while (const size_t bytes = fread(part, 1, sizeof part, pipe)) said->append(part, bytes);
  return pclose(pipe) == 0;
}

}  // namespace

bool compile(Program* program, const std::vector<std::string>& options) {
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
  if (!run_compiler(words, &program->log)) return false;
  program->image = contents(library);
  return true;
}

}  // namespace cuda_on_cpu
