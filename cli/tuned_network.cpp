// Scans that lie on the network's device before anything is timed.
#include "tuned_network.hpp"

#include <CLI/App.hpp>

#include <pumice/core/error.hpp>

namespace pumice::cli {

TunedNetwork::TunedNetwork(const RunArguments& arguments, NetworkMode mode)
    : card_(read_card(arguments)),
      info_(network_info(arguments, card_)),
      network_(arguments, card_, info_, mode),
      plans_together_(arguments.graph && mode == NetworkMode::inference) {
  for (const std::string& scan : arguments.scans) {
    const Batch batch = read_batch({scan}, {}, arguments.reading, arguments.voxels.options(info_));
    PUMICE_EXPECTS(
        batch.voxels.size() > 0, scan,
        ": none of its points is in range, so that there is nothing to measure; leave it "
        "out, or give another --range");
    inputs_.push_back(network_.input(batch));
  }
}

NetworkPasses TunedNetwork::passes() {
  const auto pass = [this](bool may_be_graph) {
    return [this, may_be_graph](int scan) {
      network_.enqueue(inputs_[static_cast<std::size_t>(scan)], may_be_graph);
    };
  };
  return {.run = pass(false),
          .whole = pass(true),
          .plans_together = plans_together_,
          .scans = static_cast<int>(inputs_.size()),
          .stream = network_.stream()};
}

std::vector<std::int64_t> TunedNetwork::voxels() const {
  std::vector<std::int64_t> voxels;
  for (const NetworkRun::Input& input : inputs_)
    voxels.push_back(input.features.rows());
  return voxels;
}

NetworkOptions add_tuned_network(CLI::App& command, RunArguments& arguments) {
  const NetworkOptions options = add_network_options(command, arguments);
  // Not required of CLI11, which would ask for them beside a command of this one, too.
  command.get_option("NETWORK")->required(false);
  command.add_option(
      "SCANS", arguments.scans,
      ".bin, .pcd.bin, .pcd, .ply, .npy or .npz files, each of which is run on its own");
  add_threads(command);
  add_json(command, arguments.json);
  return options;
}

}   // namespace pumice::cli
