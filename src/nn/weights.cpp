// Matching the entries of a file with the parameters of a network.
#include <pumice/nn/weights.hpp>

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <pumice/core/safetensors.hpp>

#include "core/printable.hpp"

namespace pumice::nn {
namespace {

constexpr std::string_view kBatchCounter = ".num_batches_tracked";
constexpr std::size_t kListed = 5;   // names in a message before "and 37 more"

std::string listed(std::string_view what, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string text = "; " + std::string(what) + ": ";
  for (std::size_t i = 0; i < items.size() && i < kListed; ++i) {
    text += (i > 0 ? ", " : "") + items[i];
  }
  if (items.size() > kListed) text += " and " + std::to_string(items.size() - kListed) + " more";
  return text;
}

/// How the file differs from the network; empty when it fits.
std::string differences(const std::vector<NamedParameter>& parameters, const SafetensorsFile& file,
                        const LoadOptions& options) {
  std::vector<std::string> missing;
  std::vector<std::string> misfits;
  std::vector<std::string> unexpected;
  std::set<std::string, std::less<>> known;
  for (const auto& [name, parameter] : parameters) {
    known.insert(name);
    if (name.ends_with(".running_mean")) {
      known.insert(name.substr(0, name.rfind('.')) + std::string(kBatchCounter));
    }
    if (!file.contains(name)) {
      missing.push_back(name);
      continue;
    }
    const Tensor& value = std::as_const(*parameter).value();
    if (file.shape(name) != value.shape()) {
      misfits.push_back(name + " is " + to_string(file.shape(name)) + ", not " +
                        to_string(value.shape()));
    } else if (!is_floating(file.dtype(name)) ||
               (file.dtype(name) != value.dtype() && !options.convert)) {
      misfits.push_back(name + " is " + std::string(name_of(file.dtype(name))) + ", not " +
                        std::string(name_of(value.dtype())) +
                        (is_floating(file.dtype(name)) ? "; LoadOptions::convert takes it" : ""));
    }
  }
  for (const std::string& name : file.names()) {
    if (!known.contains(name)) unexpected.push_back(printable(name));
  }
  return listed("missing", missing) + listed("mismatched", misfits) +
         listed("unexpected", unexpected);
}

}   // namespace

void load_weights(ParameterTree& network, const std::filesystem::path& path,
                  const LoadOptions& options) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::vector<NamedParameter> parameters = network.parameters();
  const std::string differing = differences(parameters, file, options);
  PUMICE_EXPECTS(differing.empty(), "weights ", file.name(), " do not fit the network", differing);
  std::vector<Tensor> values;   // all read before any is taken, so that a bad file changes nothing
  values.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) {
    values.push_back(file.get(name).to(std::as_const(*parameter).value().dtype()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].parameter->set(std::move(values[i]));
  }
}

void save_weights(const ParameterTree& network, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> entries;
  for (const auto& [name, parameter] : network.parameters()) {
    entries.emplace_back(name, std::as_const(*parameter).value().view());
  }
  write_safetensors(path, entries, metadata);
}

}   // namespace pumice::nn
