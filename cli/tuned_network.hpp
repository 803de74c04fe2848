// A network and its scans, as the tuner runs them.
#pragma once

#include <vector>

#include <pumice/ops/tune_network.hpp>

#include "run_arguments.hpp"
#include "run_network.hpp"

namespace CLI {
class App;
}   // namespace CLI

namespace pumice::cli {

class TunedNetwork {
 public:
  /// Reads the scans, each of which is a batch of one, and makes the network.
  TunedNetwork(const RunArguments& arguments, NetworkMode mode);

  /// Valid as long as this.
  NetworkPasses passes();
  /// Of each scan.
  std::vector<std::int64_t> voxels() const;

 private:
  nn::ModelCard card_;
  nn::NetworkInfo info_;
  NetworkRun network_;
  bool plans_together_;   // as a graph does
  std::vector<NetworkRun::Input> inputs_;
};

/// NETWORK SCANS and what goes with them, for commands that run these passes.
NetworkOptions add_tuned_network(CLI::App& command, RunArguments& arguments);

}   // namespace pumice::cli
