// What `pumice run` says of layers, graphs and memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/profile.hpp>

#include "agreement.hpp"
#include "run_arguments.hpp"
#include "run_batch.hpp"
#include "run_network.hpp"

namespace pumice::cli {

/// Milliseconds, a number a repeat.
struct RunTimes {
  std::vector<double> total_ms;
  std::vector<double> device_ms;   // of a graph; else empty
};

/// What a batch came to, for machines and for people; `captured` where it ran as a graph.
void print_json(const RunArguments& arguments, const Batch& batch, const Forward& forward,
                const RunTimes& times, const std::optional<Agreement>& agreement,
                const nn::CapturedNetwork* captured);
void print_words(const RunArguments& arguments, const Batch& batch, const Forward& forward,
                 const RunTimes& times, const std::optional<Agreement>& agreement,
                 const nn::CapturedNetwork* captured);

/// A line a layer, and their sum.
std::string layer_table(const nn::Profile& profile);
nlohmann::ordered_json to_json(const nn::Profile& profile);
/// The first of its graphs: `room`, `nodes`, `bytes`.
nlohmann::ordered_json to_json(const nn::CapturedNetwork& captured);
/// Resident memory of this process at its highest, MiB.
double peak_mebibytes();

}   // namespace pumice::cli
