// Tables and JSON of a run.
#include "run_report.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "core/printable.hpp"
#include "statistics.hpp"
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

void print_json(const RunArguments& arguments, const Batch& batch, const Forward& forward,
                const RunTimes& times, const std::optional<Agreement>& agreement,
                const nn::CapturedNetwork* captured) {
  using Json = nlohmann::ordered_json;
  const Json said{{"network", arguments.network},
                  {"scans", arguments.scans},
                  {"points", batch.points},
                  {"dropped_points", batch.dropped_points},
                  {"voxels", batch.voxels.size()},
                  {"rows_out", forward.features.rows()},
                  {"channels_out", forward.features.extent(1)},
                  {"device", to_string(parse_device(arguments.device))},
                  {"graph", captured != nullptr ? to_json(*captured) : Json(nullptr)},
                  {"threads", threads()},
                  {"precision", arguments.precision},
                  {"trained", arguments.trained()},
                  {"voxelize_ms", batch.voxelize_ms},
                  {"map_ms", forward.profile.map_ms()},
                  {"total_ms", times.total_ms},
                  {"device_ms", times.device_ms},
                  {"gflop", forward.profile.gflop()},
                  {"peak_mib", peak_mebibytes()},
                  {"agreement", agreement ? to_json(*agreement) : Json(nullptr)},
                  {"layers", to_json(forward.profile)}};
  print_json(said);
}

void print_words(const RunArguments& arguments, const Batch& batch, const Forward& forward,
                 const RunTimes& times, const std::optional<Agreement>& agreement,
                 const nn::CapturedNetwork* captured) {
  const auto range_of = [](const std::vector<double>& all) {
    const auto [least, most] = std::ranges::minmax(all);
    return std::pair(least, most);
  };
  fmt::print("{}\n", layer_table(forward.profile));
  fmt::print("{}{} -> {} in {:.2f} ms; network {:.1f} ms {} in {}, maps included\n",
             counted(batch.points, "point"), dropped_text(batch.dropped_points),
             counted(batch.voxels.size(), "voxel"), batch.voxelize_ms, times.total_ms.back(),
             arguments.where(), arguments.precision);
  if (times.total_ms.size() > 1) {
    const auto [least, most] = range_of(times.total_ms);
    fmt::print("{} runs: median {:.1f} ms, {:.1f} to {:.1f}\n", times.total_ms.size(),
               median(times.total_ms), least, most);
  }
  if (captured != nullptr) {
    const nn::CapturedNetwork::Graph graph = captured->graphs().front();
    const auto [least, most] = range_of(times.device_ms);
    fmt::print(
        "as a graph of {} with room for {} in {:.0f} MiB: {:.2f} ms on the device, {:.2f} to "
        "{:.2f}\n",
        counted(graph.nodes, "node"), counted(graph.rows, "voxel"),
        static_cast<double>(graph.bytes) / (1 << 20), median(times.device_ms), least, most);
  }
  fmt::print("peak resident memory {:.0f} MiB\n", peak_mebibytes());
  if (!arguments.trained()) fmt::print("weights: untrained, seed {}\n", arguments.seed);
  if (agreement) {
    fmt::print("\nagreement with the labels of the scan{}:\n\n{}\n",
               batch.clouds.size() == 1 ? "" : "s", agreement_table(*agreement));
  }
  const RunResults& where = arguments.results;
  if (!where.out.empty()) fmt::print("result written to {}\n", printable_path(where.out));
  if (!where.classes.empty()) fmt::print("labels written to {}\n", printable_path(where.classes));
  if (!where.picture.empty()) fmt::print("picture written to {}\n", printable_path(where.picture));
  if (!where.html.empty()) fmt::print("page written to {}\n", printable_path(where.html));
}

}   // namespace pumice::cli
