// What `pumice run` is asked for, and whether it can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pumice/nn/model_card.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/plan/convolution_plan.hpp>

#include "arguments.hpp"
#include "picture_size.hpp"

namespace CLI {
class App;
class Option;
}   // namespace CLI

namespace pumice::cli {

/// Where results of one batch, or of every scan of a folder, go; empty where they are not asked
/// for.
struct RunResults {
  std::string out;
  std::string classes;
  std::string picture;
  std::string html;
};

struct RunArguments {
  std::string network;
  std::vector<std::string> scans;
  std::vector<std::string> labels;
  ScanArguments reading;
  VoxelArguments voxels;
  std::string weights;
  std::string widths = "spvnas";
  bool widths_given = false;
  bool width_factor_given = false;
  double width_factor = 1;
  std::uint64_t seed = 0;
  std::string precision = "f32";
  std::string device = "cpu";
  bool graph = false;
  bool deterministic = false;
  std::string dataflow;
  std::string plans;   // a table
  int repeat = 1;
  RunResults results;
  PictureSize size;
  bool json = false;

  Precision stored() const { return parse_precision(precision, parse_device(device)); }
  std::optional<Dataflow> wanted_dataflow() const {
    return dataflow.empty() ? std::nullopt : std::optional(parse_dataflow(dataflow));
  }
  Numerics numerics() const { return {.deterministic = deterministic, .tf32 = stored().tf32}; }
  bool trained() const { return !weights.empty(); }
  /// "on cuda:0", "with 2 threads".
  std::string where() const;
};

/// Options of which it is asked whether they were given.
struct NetworkOptions {
  const CLI::Option* widths = nullptr;
  const CLI::Option* factor = nullptr;

  /// Before anything else is done with the arguments.
  void finish(RunArguments& arguments) const;
};

/// NETWORK, and what every command takes that makes one: how scans are read and voxelised, weights,
/// widths, types and the device. `arguments` outlives `command`.
NetworkOptions add_network_options(CLI::App& command, RunArguments& arguments);

/// UserError for options that cannot be had together; before anything is read.
void check_options(const RunArguments& arguments);

/// What the weights say of themselves; UserError where the command line says otherwise.
nn::ModelCard read_card(const RunArguments& arguments);

/// What the network expects, where the weights say otherwise; UserError for widths it does not
/// take, and for classes it does not give.
nn::NetworkInfo network_info(const RunArguments& arguments, const nn::ModelCard& card);

}   // namespace pumice::cli
