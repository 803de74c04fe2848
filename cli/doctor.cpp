// `pumice doctor`: what this machine offers, in words.
#include <memory>
#include <string>

#include <fmt/core.h>
#include <fmt/format.h>
#include <tbb/info.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/cuda.hpp>
#include <pumice/jit/support.hpp>
#include <pumice/kernels/support.hpp>
#include <pumice/kernels/tile_mma.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/memory.hpp"
#include "core/printable.hpp"
#include "measure.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

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

Finding driver() {
  const CudaSupport& support = cuda_support();
  const std::string version = "CUDA " + support.version;
  return {"cuda_driver", "CUDA driver", support.available ? version : support.reason};
}

Finding compiler() {
  const KernelCompiler& nvrtc = kernel_compiler();
  const std::string text = "NVRTC " + nvrtc.version + ", " + nvrtc.path;
  return {"kernel_compiler", "Kernel compiler", nvrtc.available ? text : nvrtc.reason};
}

Finding dense_products() {
  const DenseProductLibrary& library = dense_product_library();
  return {"cublas", "cuBLAS", library.available ? library.path : library.reason};
}

Finding cache() {
  const KernelCache kept = kernel_cache();
  const nlohmann::ordered_json value{{"folder", kept.folder.string()},
                                     {"kernels", kept.kernels},
                                     {"bytes", kept.bytes},
                                     {"limit_bytes", kept.limit_bytes}};
  constexpr double kMebibyte = 1 << 20;
  const std::string text =
      fmt::format("{}: {}, {:.1f} of {:.0f} MiB", printable_path(kept.folder),
                  counted(kept.kernels, "kernel"), static_cast<double>(kept.bytes) / kMebibyte,
                  static_cast<double>(kept.limit_bytes) / kMebibyte);
  return {"kernel_cache", "Kernel cache", value,
          kept.folder.empty() ? "none: neither PUMICE_CACHE nor HOME names a folder" : text};
}

/// "1,234 kernels for sm_80, sm_90a by NVRTC 12.9 in PATH", for each bundle.
Finding bundles() {
  Finding found{"kernel_bundles", "Kernels compiled ahead", nlohmann::ordered_json::array(),
                "none: kernels are compiled when they are first needed"};
  for (const KernelBundle& bundle : kernel_bundles()) {
    found.value.push_back({{"path", bundle.path.string()},
                           {"problem", bundle.problem},
                           {"kernels", bundle.kernels},
                           {"bytes", bundle.bytes},
                           {"architectures", bundle.architectures},
                           {"compiler", bundle.compiler}});
    if (found.value.size() == 1) found.text.clear();
    if (!found.text.empty()) found.text += "; ";
    found.text += printable_path(bundle.path) + ": ";
    found.text += !bundle.problem.empty()
                      ? "ignored, " + bundle.problem
                      : fmt::format("{} for {} by NVRTC {}", counted(bundle.kernels, "kernel"),
                                    fmt::join(bundle.architectures, ", "), bundle.compiler);
  }
  return found;
}

/// All devices under one key.
Finding devices() {
  Finding found{"cuda_devices", "CUDA devices", nlohmann::ordered_json::array(), "none"};
  for (int index = 0; index < cuda_support().devices; ++index) {
    const CudaDeviceInfo& info = cuda_device_info(index);
    const std::string device = to_string(Device{DeviceKind::cuda, index});
    const std::string capability = fmt::format("{}.{}", info.major, info.minor);
    const double gib = static_cast<double>(info.memory_bytes) / kGibibyte;
    found.value.push_back({{"device", device},
                           {"name", info.name},
                           {"compute_capability", capability},
                           {"memory_gib", gib},
                           {"multiprocessors", info.multiprocessors}});
    if (index == 0) found.text.clear();
    found.text += fmt::format("{}{}: {}, compute capability {}, {:.1f} GiB", index == 0 ? "" : "; ",
                              device, info.name, capability, gib);
  }
  return found;
}

constexpr const char* kCudaWork =
    "sets, maps, operators and their gradients in f32, tf32, f16 and bf16";

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
      driver(),
      devices(),
      compiler(),
      bundles(),
      dense_products(),
      cache(),
      {"cuda", "CUDA back end", kCudaWork,
       cuda_support().devices > 0 ? ""
                                  : "no device to use it on; it has " + std::string(kCudaWork)},
  };
}

void doctor(bool json) {
  if (json) {
    nlohmann::ordered_json result;
    for (const Finding& finding : findings())
      result[finding.key] = finding.value;
    print_json(result);
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
  CLI::App* command = app.add_subcommand("doctor", "Print what works on this machine");
  add_json(*command, *json);
  command->callback([json] { doctor(*json); });
}

}   // namespace pumice::cli
