// What each layer of a forward pass did and how long it took.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pumice::nn {

struct LayerRecord {
  std::string name;   // path in the network, "stage1.1.net.0"
  std::string kind;   // "submanifold 3x3x3 + norm + relu"
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::int64_t pairs = 0;   // 0 where no kernel map is used
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  double map_ms = 0;   // building the map; 0 when another layer had built it
  double ms = 0;       // the layer itself, without the map
  double gflop = 0;    // 10^9 operations over the pairs that exist
  std::string plan;    // name of the plan that ran; empty where there is no choice
};

/// Filled by a forward pass whose context points here. On a device every layer is waited for, so
/// that the times are its own; the pass takes longer than without.
struct Profile {
  std::vector<LayerRecord> layers;
  /// Called after each convolution, linear and pooling layer with how many have run.
  std::function<void(int done, int count)> progress{};
  int expected = 0;   // `count` above: Module::layer_count() of the network
  int done = 0;

  double total_ms() const;   // layers, without maps
  double map_ms() const;
  double gflop() const;
  /// `counts`: the layers that the record is of, of those in `expected`.
  void add(LayerRecord record, int counts);
};

/// Milliseconds since it was made.
class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}   // namespace pumice::nn
