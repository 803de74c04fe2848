// Tables and JSON of a run.
#include "run_report.hpp"

#include <fstream>

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "terminal.hpp"

namespace pumice::cli {

/// From /proc, since getrusage counts what the parent had in use before it became this program.
double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;   // kibibytes
  }
  throw Error("/proc/self/status: VmHWM, the peak of resident memory, is missing");
}

std::string layer_table(const nn::Profile& profile) {
  Table table({"<layer", "<kind", "rows", "pairs", "channels", "map ms", "ms", "GFLOP/s", "<plan"});
  const auto positive = [](double value, const char* pattern) {
    return value > 0 ? fmt::format(fmt::runtime(pattern), value) : std::string();
  };
  for (const nn::LayerRecord& layer : profile.layers) {
    table.add({layer.name, layer.kind, with_commas(layer.out_rows),
               layer.pairs > 0 ? with_commas(layer.pairs) : "",
               fmt::format("{} > {}", layer.in_channels, layer.out_channels),
               positive(layer.map_ms, "{:.2f}"), fmt::format("{:.2f}", layer.ms),
               positive(layer.ms > 0 ? layer.gflop / layer.ms * 1e3 : 0, "{:.0f}"), layer.plan});
  }
  table.add_rule();
  table.add(
      {"all layers", "", "", "", "", fmt::format("{:.2f}", profile.map_ms()),
       fmt::format("{:.2f}", profile.total_ms()),
       positive(profile.total_ms() > 0 ? profile.gflop() / profile.total_ms() * 1e3 : 0, "{:.0f}"),
       fmt::format("{:.1f} GFLOP", profile.gflop())});
  return table.text();
}

nlohmann::ordered_json to_json(const nn::Profile& profile) {
  auto layers = nlohmann::ordered_json::array();
  for (const nn::LayerRecord& layer : profile.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"rows_in", layer.in_rows},
                      {"rows", layer.out_rows},
                      {"pairs", layer.pairs},
                      {"channels_in", layer.in_channels},
                      {"channels_out", layer.out_channels},
                      {"map_ms", layer.map_ms},
                      {"ms", layer.ms},
                      {"gflop", layer.gflop},
                      {"plan", layer.plan}});
  }
  return layers;
}

nlohmann::ordered_json to_json(const nn::CapturedNetwork& captured) {
  const nn::CapturedNetwork::Graph graph = captured.graphs().front();
  return {{"room", graph.rows}, {"nodes", graph.nodes}, {"bytes", graph.bytes}};
}

}   // namespace pumice::cli
