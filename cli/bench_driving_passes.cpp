// Networks of a workload, run in turns.
#include "bench_driving_passes.hpp"

#include <functional>
#include <list>
#include <utility>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/profile.hpp>

#include <fmt/format.h>

#include "arguments.hpp"
#include "statistics.hpp"

namespace pumice::cli {
namespace {

using Passes = std::vector<std::pair<std::string, std::function<void()>>>;

void reset_peak(Device device) {
  if (device.kind == DeviceKind::cpu) return reset_cpu_memory_peak();
  reset_cuda_memory_peak(device.index);
}

std::int64_t peak_bytes(Device device) {
  return device.kind == DeviceKind::cpu ? cpu_memory_use().peak_bytes
                                        : cuda_memory_use(device.index).peak_bytes;
}

void time_pass(const std::function<void()>& pass, StreamView stream, PassTimes& times) {
  const bool on_device = stream.device.kind != DeviceKind::cpu;
  Event start(stream.device, true), stop(stream.device, true);
  wait(stream);
  const nn::Stopwatch watch;
  start.record(stream);
  pass();
  stop.record(stream);
  times.host.push_back(watch.ms());
  wait(stream);
  times.whole.push_back(watch.ms());
  if (on_device) times.device.push_back(milliseconds_between(start, stop));
}

/// The ways take turns in every round, in changing order, so that a machine that grows slower does
/// so for all of them.
std::vector<DrivingFigure> measure_ways(const Passes& ways, const std::string& precision,
                                        const DrivingPasses& passes, StreamView stream) {
  std::vector<DrivingFigure> figures;
  for (const auto& [way, pass] : ways) {
    for (int i = 0; i < 2; ++i)   // kernels are compiled and graphs recorded
      pass();
    wait(stream);
    reset_peak(stream.device);
    pass();
    wait(stream);
    figures.push_back({precision, way, {}, peak_bytes(stream.device)});
  }
  for (int round = 0; round < passes.rounds; ++round) {
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t at = round % 2 == 0 ? turn : ways.size() - 1 - turn;
      PassTimes times;
      for (int i = 0; i < passes.repeat; ++i)
        time_pass(ways[at].second, stream, times);
      PassTimes& rounds = figures[at].rounds;
      rounds.whole.push_back(median(times.whole));
      rounds.host.push_back(median(times.host));
      if (!times.device.empty()) rounds.device.push_back(median(times.device));
    }
  }
  return figures;
}

CoordinateBounds bounds_within(const Axes& shape) {
  CoordinateBounds bounds;
  for (std::size_t axis = 0; axis < 3; ++axis)
    bounds.high[axis] = shape[axis] - 1;
  return bounds;
}

}   // namespace

std::vector<DrivingFigure> measure_workload(const DrivingWorkload& work, const DrivingInput& input,
                                            const std::string& precision,
                                            const DrivingPasses& passes, StreamView stream) {
  const Precision stored = parse_precision(precision, stream.device);
  const double slim = passes.size == DrivingSize::tiny ? 0.25 : 1;
  const auto network = nn::make_network(
      work.network, {.in_channels = work.in_channels,
                     .classes = work.classes > 0 ? work.classes : nn::NetworkOptions{}.classes,
                     .widths = nn::kDrivingWidths,
                     .width_factor = work.width_factor * slim});
  network->to(stored.dtype);
  network->eval();
  nn::fold(*network);
  const bool on_device = stream.device.kind != DeviceKind::cpu;
  if (on_device) network->to(stream);
  const Tensor coordinates = copy_to(stream, input.coordinates);
  const Tensor features = copy_to(stream, input.features.to(stored.dtype));
  // With declared bounds no pass waits to look for them.
  const CoordinateOptions options{.spatial_shape = input.spatial_shape,
                                  .batch_size = 1,
                                  .bounds = bounds_within(input.spatial_shape)};
  const Numerics numerics{.tf32 = stored.tf32};
  const auto forward = [&](nn::SparseTensor x) {
    nn::Context context;
    context.numerics = numerics;
    (void)network->forward(std::move(x), context);
  };
  const nn::SparseTensor kept(CoordinateSet::create(coordinates, options), features);
  std::list<nn::CapturedNetwork> captured;
  Passes ways{{"layers",
               [&] {
                 forward({CoordinateSet::create(coordinates, options), features});
               }},
              {"layers, maps kept", [&] { forward(kept); }}};
  if (on_device) {
    const auto add = [&](const std::string& name, const nn::CaptureOptions& how) {
      captured.emplace_back(network, stream, how);
      ways.emplace_back(name, [&, graph = &captured.back()] {
        (void)graph->forward(coordinates, features, options);
      });
    };
    add("graph", {.numerics = numerics});
    if (passes.ablation) {
      add("graph, without groups", {.numerics = numerics, .shares_cuts = false});
      for (const Dataflow dataflow : {Dataflow::implicit_gemm, Dataflow::fetch_on_demand})
        add(fmt::format("graph, {} alone", name_of(dataflow)),
            {.dataflow = dataflow, .numerics = numerics});
    }
  }
  return measure_ways(ways, precision, passes, stream);
}

}   // namespace pumice::cli
