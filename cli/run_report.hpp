// What `pumice run` says of layers, graphs and memory.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/profile.hpp>

namespace pumice::cli {

/// A line a layer, and their sum.
std::string layer_table(const nn::Profile& profile);
nlohmann::ordered_json to_json(const nn::Profile& profile);
/// The first of its graphs: `room`, `nodes`, `bytes`.
nlohmann::ordered_json to_json(const nn::CapturedNetwork& captured);
/// Resident memory of this process at its highest, MiB.
double peak_mebibytes();

}   // namespace pumice::cli
