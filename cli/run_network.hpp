// A network made ready, and what it says of a batch of scans.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <pumice/core/stream.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/module.hpp>
#include <pumice/nn/profile.hpp>

#include "run_arguments.hpp"
#include "run_batch.hpp"

namespace pumice::cli {

/// What came out, brought to the host.
struct Forward {
  Tensor coordinates;
  Tensor features;
  Axes stride{};
  nn::Profile profile;
  double total_ms = 0;

  /// Whether rows are those of the voxels; if not they are coarser.
  bool on_voxels() const { return stride == Axes{1, 1, 1, 1}; }
};

/// Called after each layer with how many have run.
using LayerProgress = std::function<void(int done, int count)>;

enum class NetworkMode : unsigned char { inference, training };

class NetworkRun {
 public:
  /// Makes the network, loads its weights and brings it to its device. UserError for a device that
  /// is not there, weights that do not fit, and networks larger than memory.
  NetworkRun(const RunArguments& arguments, const nn::ModelCard& card, const nn::NetworkInfo& info,
             NetworkMode mode = NetworkMode::inference);

  bool on_device() const { return stream_.device().kind == DeviceKind::cuda; }
  StreamView stream() const { return stream_; }

  /// Coordinates and features of a batch, on the network's device.
  struct Input {
    Tensor coordinates;   // i32 [N, 4]
    Tensor features;      // [N, C]
    CoordinateOptions options{};
  };
  Input input(const Batch& batch) const;
  /// Enqueues a pass over it, sets and maps made anew, whose result nobody looks at: with --graph
  /// as a graph where `may_be_graph`, in training with the backward pass.
  void enqueue(const Input& input, bool may_be_graph);

  /// With --graph; null else.
  const nn::CapturedNetwork* captured() const { return captured_ ? &*captured_ : nullptr; }

  /// One pass. The time holds everything from voxels on the host to scores where they are computed;
  /// without `profiled` nothing is waited for in between. Through the graph where there is one and
  /// the pass is not to be profiled: then the first scan of a size takes longer, since it records.
  Forward forward(const Batch& batch, bool profiled, const LayerProgress& progress = {});

  /// Milliseconds of the graph on the device alone, with the scan there already, a number a repeat.
  std::vector<double> device_times(const Batch& batch);

 private:
  Forward layer_by_layer(const Batch& batch, bool profiled, const LayerProgress& progress);
  Forward as_graph(const Batch& batch);
  CoordinateOptions coordinate_options(const Batch& batch) const;
  nn::Context context() const;

  const RunArguments& arguments_;
  NetworkMode mode_;
  std::optional<Axes> grid_;
  Stream stream_;
  std::shared_ptr<nn::Module> network_;
  std::optional<nn::CapturedNetwork> captured_;
};

}   // namespace pumice::cli
