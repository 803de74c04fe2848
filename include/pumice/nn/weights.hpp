// Weights of a network on disk: one safetensors entry for each parameter and buffer, by path.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <pumice/nn/parameter_tree.hpp>

namespace pumice::nn {

struct LoadOptions {
  /// Takes entries of another floating type than the parameter's, rounding to nearest.
  bool convert = false;
};

/// Fills every parameter and buffer from the file. UserError, in one sentence, listing the names
/// that are missing, that belong to nothing, and whose shape or type differs; then nothing is
/// changed. PyTorch's `num_batches_tracked` beside a norm's parameters is passed over: the running
/// statistics move by a fixed momentum.
void load_weights(ParameterTree& network, const std::filesystem::path& path,
                  const LoadOptions& options = {});

void save_weights(const ParameterTree& network, const std::filesystem::path& path,
                  const std::map<std::string, std::string>& metadata = {});

}   // namespace pumice::nn
