// One NVRTC program from text to cubin.
#include "jit/compile.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "jit/device_tree.hpp"
#include "jit/nvrtc.hpp"

namespace pumice::jit {
namespace {

class Program {
 public:
  Program(const Nvrtc& functions, const Source& source) : functions_(functions) {
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const DeviceHeader& header : device_tree()) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    check(functions_.nvrtcCreateProgram(&program_, source.text.c_str(), source.name.c_str(),
                                        static_cast<int>(texts.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { functions_.nvrtcDestroyProgram(&program_); }

  NvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> list;
    for (const std::string& option : options)
      list.push_back(option.c_str());
    return functions_.nvrtcCompileProgram(program_, static_cast<int>(list.size()), list.data());
  }
  std::string log() {
    std::size_t size = 0;
    check(functions_.nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    check(functions_.nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
    while (!text.empty() && text.back() == '\0')
      text.pop_back();
    return text;
  }
  std::vector<std::byte> cubin() {
    std::size_t size = 0;
    check(functions_.nvrtcGetCUBINSize(program_, &size), "nvrtcGetCUBINSize");
    std::vector<std::byte> bytes(size);
    check(functions_.nvrtcGetCUBIN(program_, reinterpret_cast<char*>(bytes.data())),
          "nvrtcGetCUBIN");
    return bytes;
  }

 private:
  void check(NvrtcResult result, const char* what) const {
    if (result != 0)
      throw Error(detail::concatenate(what, ": ", functions_.nvrtcGetErrorString(result)));
  }

  const Nvrtc& functions_;
  NvrtcProgram program_ = nullptr;
};

/// Calls body(line) for each line of `text`.
template <class Body> void for_each_line(std::string_view text, Body&& body) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    body(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

constexpr std::size_t kMostColumns = 200;

/// The first lines of a log, without the assembler's statistics.
std::string first_lines(std::string_view log, int most) {
  std::string text;
  int lines = 0;
  int left_out = 0;
  for_each_line(log, [&](std::string_view line) {
    if (line.starts_with("ptxas info") || line.find_first_not_of(" \t") == std::string_view::npos)
      return;
    if (++lines > most) {
      ++left_out;
    } else {
      text.append("\n  ").append(line.substr(0, kMostColumns));
    }
  });
  if (left_out > 0)
    text += detail::concatenate("\n  and ", left_out, " lines more; PUMICE_LOG=kernel shows all");
  return text;
}

/// The number that ends right before `what` in `line`, or 0.
int number_before(std::string_view line, std::string_view what) {
  const std::size_t end = line.find(what);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

void check_architecture(const Source& source, std::string_view architecture) {
  const NvrtcState& state = nvrtc_state();
  int number = 0;
  constexpr std::string_view kPrefix = "sm_";
  if (architecture.starts_with(kPrefix)) {
    std::from_chars(architecture.data() + kPrefix.size(), architecture.data() + architecture.size(),
                    number);
  }
  const auto& known = state.architectures;
  PUMICE_EXPECTS(std::find(known.begin(), known.end(), number) != known.end(), source.name,
                 ": NVRTC ", state.major, '.', state.minor, " (", state.path,
                 ") does not compile for ", architecture, "; it knows sm_",
                 known.empty() ? 0 : known.front(), " to sm_", known.empty() ? 0 : known.back());
}

void log_program(const Source& source, std::string_view architecture,
                 const std::vector<std::string>& options, const std::string& said) {
  if (!logging(LogTopic::kernel)) return;
  std::string all;
  for (const std::string& option : options)
    all += ' ' + option;
  log(LogTopic::kernel, detail::concatenate(source.name, " for ", architecture, " with", all, '\n',
                                            source.text, said.empty() ? "" : "\n", said));
}

}   // namespace

std::vector<std::string> compile_options(const Source& source, std::string_view architecture) {
  // -v makes the assembler report registers and spills into the log.
  std::vector<std::string> options{"--gpu-architecture=" + std::string(architecture), "--std=c++20",
                                   "--ptxas-options=-v"};
  options.insert(options.end(), source.options.begin(), source.options.end());
  return options;
}

CompileResult compile(const Source& source, std::string_view architecture) {
  const Nvrtc& functions = nvrtc();
  check_architecture(source, architecture);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> options = compile_options(source, architecture);
  Program program(functions, source);
  const NvrtcResult result = program.compile(options);
  CompileResult compiled;
  compiled.log = program.log();
  log_program(source, architecture, options, compiled.log);
  if (result != 0) {
    throw Error(detail::concatenate(source.name, " does not compile for ", architecture, " (",
                                    functions.nvrtcGetErrorString(result),
                                    "):", first_lines(compiled.log, 12)));
  }
  compiled.cubin = program.cubin();
  compiled.kernels = parse_reports(compiled.log);
  compiled.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

std::string complaint_about(const CompileResult& compiled) {
  for (const KernelReport& kernel : compiled.kernels) {
    if (kernel.spill_store_bytes + kernel.spill_load_bytes + kernel.stack_bytes == 0) continue;
    return detail::concatenate(kernel.name, " spills ", kernel.spill_store_bytes, " bytes, reads ",
                               kernel.spill_load_bytes, " back and keeps ", kernel.stack_bytes,
                               " on its stack");
  }
  for (const char* note : {"C7510", "C7512", "C7517", "C7520"}) {
    if (compiled.log.find(note) != std::string::npos)
      return detail::concatenate("its wgmma instructions are serialised, note ", note);
  }
  return {};
}

const Digest& device_tree_digest() {
  static const Digest tree = [] {
    Sha256 digest;
    for (const DeviceHeader& header : device_tree()) {
      digest.add_field(header.name);
      digest.add_field(header.text);
    }
    return digest.finish();
  }();
  return tree;
}

Digest source_digest(const Source& source, std::string_view architecture) {
  static const std::string tree = hexadecimal(device_tree_digest());
  Sha256 digest;
  digest.add_field("pumice source 1");
  digest.add_field(tree);
  for (const std::string& option : compile_options(source, architecture))
    digest.add_field(option);
  digest.add_field(source.text);
  return digest.finish();
}

std::vector<KernelReport> parse_reports(std::string_view log) {
  std::vector<KernelReport> reports;
  for_each_line(log, [&](std::string_view line) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const std::size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + kEntry.size());
      reports.push_back({.name = std::string(rest.substr(0, rest.find('\'')))});
    }
    if (reports.empty()) return;
    KernelReport& report = reports.back();
    if (line.find(" bytes stack frame") != std::string_view::npos) {
      report.stack_bytes = number_before(line, " bytes stack frame");
      report.spill_store_bytes = number_before(line, " bytes spill stores");
      report.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find(" registers") != std::string_view::npos) {
      report.registers = number_before(line, " registers");
      report.shared_bytes = number_before(line, " bytes smem");
    }
  });
  return reports;
}

}   // namespace pumice::jit
