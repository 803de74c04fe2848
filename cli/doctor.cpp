// `pumice doctor`: what this machine offers, in words.
#include <fstream>
#include <memory>
#include <string>

#include <dlfcn.h>
#include <fmt/core.h>
#include <tbb/info.h>

#include <pumice/kernels/tile_mma.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "memory.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

/// The value of the first line of /proc/cpuinfo or /proc/meminfo that begins with `key`.
std::string proc_value(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return "unknown";
}

/// "there", or the loader's reason why a library cannot be opened.
std::string library_state(const char* name) {
  void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return "not there";
  dlclose(handle);
  return "there";
}

/// Highway's name for what the kernels run with, as processors' makers call it.
std::string instruction_set() {
  const std::string_view target = kernel_target();
  return std::string(target.starts_with("AVX3") ? "AVX-512" : target);
}

struct Finding {
  std::string key;
  std::string name;
  nlohmann::ordered_json value;   // as a machine wants it
  std::string text{};             // as a person does; empty: the value itself
  std::string shown() const {
    if (!text.empty()) return text;
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
};

std::vector<Finding> findings() {
  const double gib = memory_bytes() / kGibibyte;
  return {
      {"version", "Pumice", PUMICE_VERSION},
      {"processor", "Processor", proc_value("/proc/cpuinfo", "model name")},
      {"threads", "Processors usable", tbb::info::default_concurrency()},
      {"memory_gib", "Memory", gib, fmt::format("{:.1f} GiB", gib)},
      {"instructions", "Kernels run with", instruction_set()},
      {"bf16", "bf16 products",
       multiplies_bf16() ? "in hardware"
                         : "widened to float: this processor does not multiply bf16"},
      {"cuda_driver", "CUDA driver", library_state("libcuda.so.1")},
      {"cuda", "CUDA back end", "not part of this version: everything runs on the CPU"},
  };
}

void doctor(bool json) {
  if (json) {
    nlohmann::ordered_json result;
    for (const Finding& finding : findings())
      result[finding.key] = finding.value;
    fmt::print("{}\n", result.dump());
    return;
  }
  Table table({"<what", "<here"});
  for (const Finding& finding : findings())
    table.add({finding.name, finding.shown()});
  fmt::print("{}", table.text());
}

}   // namespace

void add_doctor_command(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine offers");
  add_json(*command, *json);
  command->callback([json] { doctor(*json); });
}

}   // namespace pumice::cli
