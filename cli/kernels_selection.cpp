// Kernels by architecture, channels and type.
#include "kernels_selection.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "plan/spec_names.hpp"

namespace pumice::cli {
namespace {

using cuda::NamedArchitecture;

std::vector<std::pair<std::int64_t, std::int64_t>> channels_of(const KernelArguments& arguments) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const std::string& text : arguments.channels) {
    std::int64_t in = 0;
    std::int64_t out = 0;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, in);
    const bool crossed = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
    const auto second = crossed ? std::from_chars(first.ptr + 1, end, out) : first;
    PUMICE_EXPECTS(crossed && second.ec == std::errc() && second.ptr == end && in >= 1 &&
                       out >= 1 && in <= kMostChannels && out <= kMostChannels,
                   "--channels ", text, ": give input and output channels, each 1 to ",
                   kMostChannels, ", as in 32x64");
    pairs.emplace_back(in, out);
  }
  return pairs;
}

std::vector<ElementType> types_of(const KernelArguments& arguments) {
  std::vector<ElementType> chosen;
  for (const ElementType type : nn::product_types()) {
    const bool asked = std::find(arguments.types.begin(), arguments.types.end(),
                                 cuda::name_of(type)) != arguments.types.end();
    if (asked || arguments.types.empty()) chosen.push_back(type);
  }
  return chosen;
}

}   // namespace

std::vector<NamedArchitecture> architectures_of(const KernelArguments& arguments) {
  std::vector<NamedArchitecture> chosen;
  std::string known;
  std::size_t found = 0;
  for (const NamedArchitecture& architecture : cuda::known_architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
    const bool asked = std::find(arguments.architectures.begin(), arguments.architectures.end(),
                                 architecture.name) != arguments.architectures.end();
    if (asked || arguments.architectures.empty()) chosen.push_back(architecture);
    found += asked ? 1 : 0;
  }
  const std::set<std::string> asked(arguments.architectures.begin(), arguments.architectures.end());
  PUMICE_EXPECTS(found == asked.size(), "--arch ", fmt::format("{}", fmt::join(asked, " ")),
                 ": kernels are specified for ", known);
  return chosen;
}

int number_of(std::string_view architecture) {
  int number = 0;
  std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number;
}

nn::DeviceKernels selection(const KernelArguments& arguments, std::uint32_t architecture,
                            bool tables) {
  nn::DeviceKernels kernels(architecture);
  const std::vector<ElementType> types = types_of(arguments);
  const auto pairs = channels_of(arguments);
  kernels.add_shared();
  if (pairs.empty() || arguments.common) {
    kernels.add_common(types);
    if (tables) kernels.add_tables();
  }
  for (const auto& [in, out] : pairs)
    kernels.add(in, out, types);
  kernels.add(arguments.plans);
  return kernels;
}

}   // namespace pumice::cli
