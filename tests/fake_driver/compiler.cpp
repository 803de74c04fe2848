// A compiler with NVRTC's interface, for PUMICE_NVRTC, whose device is the emulator: the host's own
// compiler makes a library of functions that the fake driver loads and runs, a fiber a thread. So
// what needs a GPU can be run, slowly, where there is none.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Result = int;

constexpr Result kSuccess = 0;
constexpr Result kCompilation = 6;
constexpr std::array kArchitectures{75, 80, 86, 89, 90, 100, 120};
/// What stands before a kernel in preprocessed text, and nowhere else.
constexpr const char* kKernelMark = "extern \"C\" __attribute__((used))";

/// Calls before every access instead of checks in place, and none for the stack.
constexpr const char* kTrackingOptions =
    "-fsanitize=kernel-address --param asan-instrumentation-with-call-threshold=0 "
    "--param asan-stack=0 --param asan-globals=0";

/// Whether kernels are for a driver that wants to know which memory they read (fake.hpp).
bool tracks_memory() {
  const char* value = std::getenv("PUMICE_FAKE_DRIVER");
  return value != nullptr && std::strcmp(value, "initcheck") == 0;
}

/// What a kernel begins with. The special functions of <cmath>, which kernels do not call, are half
/// of what a kernel reads, and a fifth of the time that it takes to compile (0.49 s, 0.38 without);
/// libstdc++ reads them where its configuration defines the last of these macros.
constexpr std::string_view kBeginning =
    "#define __launch_bounds__(...)\n"
    "#if __has_include(<bits/c++config.h>)\n"
    "#include <bits/c++config.h>\n"
    "#undef _GLIBCXX_USE_STD_SPEC_FUNCS\n"
    "#endif\n"
    "#line 1\n";

/// Of a version, so that caches tell kernels apart that other options or beginnings made: FNV-1a.
constexpr unsigned options_hash() {
  unsigned hash = 2166136261u;
  for (const std::string_view part : {kBeginning, std::string_view(PUMICE_HOST_OPTIONS)}) {
    for (const char c : part)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  return hash % 1'000'000;
}

struct Program {
  std::string text;
  std::string log;
  std::string library;
};

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "pumice-compiler-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();   // nowhere to write: no test can pass
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;   // what is left in a temporary folder harms nobody
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Whether the host's compiler, with these arguments, succeeded; what it said goes to `log`.
bool run_compiler(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<std::string> words{PUMICE_HOST_COMPILER};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> list;
  for (std::string& word : words)
    list.push_back(word.data());
  list.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, list[0], &actions, nullptr, list.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 1;
  return error == 0 && waitpid(child, &status, 0) == child && status == 0;
}

/// Functions that tell how large each kernel's arguments are, as a driver reads it from a cubin.
std::string argument_sizes(const std::string& preprocessed) {
  std::string text = "\nnamespace pumice {\n";
  for (auto at = preprocessed.find(kKernelMark); at != std::string::npos;
       at = preprocessed.find(kKernelMark, at + 1)) {
    const auto open = preprocessed.find('(', at + std::strlen(kKernelMark));
    const auto name_begin = preprocessed.find_last_of(" \n", open) + 1;
    const auto type_begin = preprocessed.find("const ", open) + 6;
    const auto type_end = preprocessed.find('&', type_begin);
    const std::string name = preprocessed.substr(name_begin, open - name_begin);
    text += "extern \"C\" unsigned long " + name + "_argument_bytes() { return sizeof(" +
            preprocessed.substr(type_begin, type_end - type_begin) + "); }\n";
  }
  return text + "}\n";
}

Result compile(Program& program) {
  const Folder folder;
  const std::string source = folder / "kernel.cpp", preprocessed = folder / "kernel.ii",
                    library = folder / "kernel.so", log = folder / "log";
  write_file(source, std::string(kBeginning) + program.text);
  std::vector<std::string> options = words_of(PUMICE_HOST_OPTIONS);
  if (tracks_memory()) {
    for (const std::string& word : words_of(kTrackingOptions))
      options.push_back(word);
  }
  std::vector<std::string> first = options;
  for (const std::string& option :
       {std::string("-E"), std::string("-P"), std::string("-DPUMICE_KERNEL=") + kKernelMark, source,
        std::string("-o"), preprocessed})
    first.push_back(option);
  bool done = run_compiler(first, log);
  if (done) {
    std::string text = read_file(preprocessed);
    text += argument_sizes(text);
    write_file(preprocessed, text);
    for (const std::string& option : {std::string("-shared"), std::string("-fpreprocessed"),
                                      preprocessed, std::string("-o"), library})
      options.push_back(option);
    done = run_compiler(options, log);
  }
  program.log = read_file(log);
  if (done) program.library = read_file(library);
  return done ? kSuccess : kCompilation;
}

}   // namespace

// NOLINTBEGIN(readability-identifier-naming): NVRTC's own names
extern "C" {
Result nvrtcVersion(int* major, int* minor) {
  *major = 12;
  // No real one has such numbers, so that what the three make never meets in a cache.
  *minor = static_cast<int>(100 * options_hash()) + (tracks_memory() ? 98 : 99);
  return kSuccess;
}
Result nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(kArchitectures.size());
  return kSuccess;
}
Result nvrtcGetSupportedArchs(int* architectures) {
  std::copy(kArchitectures.begin(), kArchitectures.end(), architectures);
  return kSuccess;
}
Result nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                          const char* const*) {
  *program = new Program{text, {}, {}};
  return kSuccess;
}
Result nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}
Result nvrtcCompileProgram(Program* program, int, const char* const*) {
  return compile(*program);
}
Result nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->library.size();
  return kSuccess;
}
Result nvrtcGetCUBIN(Program* program, char* bytes) {
  std::memcpy(bytes, program->library.data(), program->library.size());
  return kSuccess;
}
Result nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;
  return kSuccess;
}
Result nvrtcGetProgramLog(Program* program, char* text) {
  std::memcpy(text, program->log.c_str(), program->log.size() + 1);
  return kSuccess;
}
const char* nvrtcGetErrorString(Result result) {
  return result == kSuccess ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}
}
// NOLINTEND(readability-identifier-naming)
