// `pumice kernels list`: what kernels there are.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "kernels_selection.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

using cuda::PlannedKernel;

struct Listed {
  PlannedKernel kernel;
  std::vector<std::string> architectures;
};

std::string channels_text(const PlannedKernel& kernel) {
  return kernel.in_channels == 0 ? ""
                                 : fmt::format("{} > {}", kernel.in_channels, kernel.out_channels);
}

}   // namespace

void list_kernels(const KernelArguments& arguments) {
  std::vector<Listed> listed;
  std::map<std::string, std::size_t> places;   // by source text
  auto counts = nlohmann::ordered_json::object();
  for (const cuda::NamedArchitecture& architecture : architectures_of(arguments)) {
    const nn::DeviceKernels kernels = selection(arguments, architecture.bit, true);
    for (const PlannedKernel& kernel : kernels.all()) {
      const auto [place, is_new] = places.emplace(kernel.source->text, listed.size());
      if (is_new) listed.push_back({kernel, {}});
      listed[place->second].architectures.emplace_back(architecture.name);
    }
    counts[architecture.name] = kernels.all().size();
  }
  std::stable_sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return std::pair(a.kernel.in_channels, a.kernel.out_channels) <
           std::pair(b.kernel.in_channels, b.kernel.out_channels);
  });
  if (arguments.json) {
    auto all = nlohmann::ordered_json::array();
    for (const Listed& entry : listed) {
      all.push_back({{"name", entry.kernel.source->name},
                     {"kind", entry.kernel.kind},
                     {"in_channels", entry.kernel.in_channels},
                     {"out_channels", entry.kernel.out_channels},
                     {"shared_bytes", entry.kernel.shared_bytes},
                     {"architectures", entry.architectures}});
    }
    print_json(nlohmann::ordered_json{
        {"count", listed.size()}, {"per_architecture", counts}, {"kernels", all}});
    return;
  }
  Table table({"channels", "<kind", "<specification", "shared", "<architectures"});
  for (const Listed& entry : listed) {
    table.add({channels_text(entry.kernel), entry.kernel.kind, entry.kernel.source->name,
               entry.kernel.shared_bytes == 0 ? "" : with_commas(entry.kernel.shared_bytes),
               fmt::format("{}", fmt::join(entry.architectures, " "))});
  }
  fmt::print("{}\n{} sources:", table.text(), with_commas(static_cast<long long>(listed.size())));
  for (const auto& [name, count] : counts.items())
    fmt::print(" {} {}", count.dump(), name);
  fmt::print("\n");
}

}   // namespace pumice::cli
