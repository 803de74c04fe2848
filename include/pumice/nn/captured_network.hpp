// A network as CUDA graphs: sets, maps and layers of a whole forward pass in one launch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/numerics.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/module.hpp>

namespace pumice {
class StreamHeap;
}

namespace pumice::nn {

struct CaptureOptions {
  /// Room for rows beyond those of the scan that a graph is learned from, as a factor; coarser sets
  /// and maps get as much again, since scans differ in how dense they are too.
  double margin = 1.25;
  /// What every coordinate of every scan keeps. Absent: the bounds of the scan that a graph is
  /// learned from, and half their extent more on either side.
  std::optional<CoordinateBounds> bounds{};
  /// As in nn::Context. gather_gemm_scatter, which waits for the device, cannot be recorded.
  std::optional<Dataflow> dataflow{};
  Numerics numerics{};
  /// Layers of one map take tiles of one height where another cut would cost more
  /// (pumice/plan/shared_cuts.hpp). Off: each layer cuts as its own plan says, to see what that
  /// costs.
  bool shares_cuts = true;
};

/// Runs a network in evaluation mode without waiting for the device: how many rows there are is
/// known there alone, and memory is for as many as there is room for. The first scan of a size runs
/// three times, to learn what it takes; every later one that fits is copied over and launched.
///
///     nn::CapturedNetwork fast(network, stream);
///     const nn::SparseTensor y = fast.forward(coordinates, features, {.batch_size = 1});
///     const auto rows = y.coordinates->rows().wait_for_host(stream);   // raises what went wrong
///
/// Graphs of all sizes work in the same memory, that of the largest. A graph keeps the plans that
/// it was recorded with; where others are in use since (tuning stored some), the next scan is
/// recorded anew. For one thread at a time.
class CapturedNetwork {
 public:
  /// `network` is on the device of `stream`, which is not the default stream.
  CapturedNetwork(std::shared_ptr<Module> network, StreamView stream, CaptureOptions options = {});
  CapturedNetwork(CapturedNetwork&&) noexcept;
  CapturedNetwork& operator=(CapturedNetwork&&) noexcept;
  ~CapturedNetwork();

  /// coordinates: int32 [N, 1 + D], features: [N, channels] of the network's type, both on the host
  /// or on the device. `options` as for CoordinateSet::create; without a batch size it is 1. Only
  /// enqueues where a graph fits; the result is good until the next call, in room for more rows
  /// than there are. A scan that is denser than there is room for, or out of bounds, poisons the
  /// result with NaN, and the next wait raises UserError with the numbers.
  SparseTensor forward(const ConstTensorView& coordinates, const ConstTensorView& features,
                       const CoordinateOptions& options = {});

  struct Graph {
    std::int64_t rows = 0;   // of room
    std::int64_t nodes = 0;
    std::int64_t bytes = 0;   // of memory that it works in, which is that of the other graphs too
  };
  std::vector<Graph> graphs() const;

 private:
  struct Capture;
  Capture* find(const ConstTensorView& coordinates, const ConstTensorView& features,
                const CoordinateOptions& options);
  Capture& learn(const ConstTensorView& coordinates, const ConstTensorView& features,
                 const CoordinateOptions& options);
  std::uint64_t weight_version() const;
  void forget_old_plans();
  std::shared_ptr<StreamHeap> shared_memory() const;

  std::shared_ptr<Module> network_;
  std::vector<ParameterPtr> parameters_;   // of the network, whose layers are those it began with
  StreamView stream_;
  CaptureOptions options_;
  std::vector<std::unique_ptr<Capture>> captures_;   // ascending room
};

}   // namespace pumice::nn
