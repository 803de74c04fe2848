// Tile kernels on a GPU, without the code that builds their maps there: every candidate of a layer,
// checked against float64 and timed as nodes of a graph.
//
//   PUMICE_DATA=… pumice_cuda_tile_benchmark [--type bf16] [--scene kitti_1] [--channels 64x64]
//                                            [--spec part-of-a-name] [--chosen] [--quick]
//                                            [--splits 3] [--gradient] [--shares] [--slots]
//
// --splits n shares the offsets among n tiles of every row, added in fp32 and finished by a second
// kernel, which is timed too. --gradient measures weight gradients, zeroing or summing included,
// with
// --shares also where half as many and twice as many blocks share the pairs as run at a time.
// --slots stores partial results apart and adds them in a fixed order.
//
// A line: microseconds of one launch (median, fastest and slowest of nine graphs of 20 launches),
// TFLOP/s of the pairs there are, share of rows multiplied that pairs need, and whether the result
// is right. The exit status is 1 when one is not.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <pumice/core/cuda.hpp>

#include "core/cuda/graph.hpp"
#include "cuda_tile_scenes.hpp"
#include "kernels/cuda_gradient_problem.hpp"
#include "kernels/cuda_tile_problem.hpp"
#include "plan/cuda_architecture.hpp"
#include "plan/space/tile_table.hpp"

namespace {

using namespace pumice;

struct Options {
  std::string type = "bf16", scene, channels, spec;
  bool chosen = false;   // only what the heuristic picks
  bool quick = false;    // fewer repetitions
  bool gradient = false;
  bool shares = false;   // of weight gradients: other numbers of blocks too
  bool slots = false;
  int splits = 1;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--chosen") {
      options.chosen = true;
    } else if (name == "--quick") {
      options.quick = true;
    } else if (name == "--gradient") {
      options.gradient = true;
    } else if (name == "--shares") {
      options.shares = true;
    } else if (name == "--slots") {
      options.slots = true;
    } else if (name == "--splits" && i + 1 < count) {
      options.splits = std::stoi(arguments[++i]);
    } else {
      PUMICE_EXPECTS(i + 1 < count, name, " needs a value");
      std::string* value = name == "--type"       ? &options.type
                           : name == "--scene"    ? &options.scene
                           : name == "--channels" ? &options.channels
                           : name == "--spec"     ? &options.spec
                                                  : nullptr;
      PUMICE_EXPECTS(value != nullptr, "unknown option ", name);
      *value = arguments[++i];
    }
  }
  return options;
}

ElementType element_of(const std::string& name) {
  if (name == "f32") return ElementType::f32;
  if (name == "tf32") return ElementType::tf32;
  if (name == "f16") return ElementType::f16;
  PUMICE_EXPECTS(name == "bf16", "type ", name, ": f32, tf32, f16 or bf16");
  return ElementType::bf16;
}

struct Times {
  double median = 0, fastest = 0, slowest = 0;   // microseconds of a launch
};

template <class Problem>
Times measure(const Problem& problem, const typename Problem::Prepared& run, const Stream& stream,
              bool quick) {
  const int launches = quick ? 5 : 20, graphs = quick ? 3 : 9;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    for (int i = 0; i < launches; ++i)
      problem.launch(run);
  });
  for (int i = 0; i < 2; ++i)
    graph.launch();
  std::vector<double> times;
  for (int i = 0; i < graphs; ++i) {
    Event start(stream.device(), true), stop(stream.device(), true);
    start.record(stream);
    graph.launch();
    stop.record(stream);
    stop.wait();
    times.push_back(1e3 * milliseconds_between(start, stop) / launches);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

/// Weight gradients of one layer; how many were wrong.
int run_gradients(const bench::MeasuredLayer& layer, const KernelMap& map, const Options& options,
                  const Stream& stream) {
  const ElementType operand = element_of(options.type);
  test::CudaGradientProblem problem(map.view(), operand, layer.in_channels, layer.out_channels, 1,
                                    stream);
  int wrong = 0;
  const int multiprocessors = cuda_device_info(stream.device().index).multiprocessors;
  const KernelMapView view = map.view();
  const cuda::GradientProblem described{.operand = operand,
                                        .write = options.slots ? Write::slots : Write::add,
                                        .in_channels = layer.in_channels,
                                        .out_channels = layer.out_channels,
                                        .offsets = static_cast<std::int32_t>(view.offsets),
                                        .rows = view.out_rows,
                                        .architecture = cuda::architecture_bit(stream.device()),
                                        .multiprocessors = multiprocessors};
  const cuda::GradientChoice chosen = cuda::choose_gradient(described);
  for (const GradientSpec& spec : cuda::gradient_candidates(described)) {
    const std::string name = cuda::gradient_name(spec);
    if (options.chosen && !(spec == chosen.spec)) continue;
    if (name.find(options.spec) == std::string::npos) continue;
    const std::int64_t filling = cuda::gradient_blocks(spec, multiprocessors);
    const std::int64_t chosen_blocks = chosen.share_blocks > 0 ? chosen.share_blocks : filling;
    std::vector<std::int64_t> shares{filling};
    if (options.shares && filling > 1) shares.push_back(filling / 2);
    if (options.shares) shares.push_back(filling * 2);
    if (!options.shares && spec == chosen.spec) shares = {chosen_blocks};
    for (const std::int64_t blocks : shares) {
      auto run = problem.prepare(spec, blocks);
      const test::Complaint complaint = problem.check(run);
      wrong += complaint.empty() ? 0 : 1;
      const Times times = measure(problem, run, stream, options.quick);
      std::printf("%-12s %4d x %-4d %-52s /%-4lld %8.1f (%.1f … %.1f) us %6.1f TFLOP/s %s%s%s\n",
                  layer.scene, layer.in_channels, layer.out_channels, name.c_str(),
                  static_cast<long long>(blocks), times.median, times.fastest, times.slowest,
                  problem.useful_flop() / times.median * 1e-6,
                  spec == chosen.spec && blocks == chosen_blocks ? "chosen " : "",
                  complaint.empty() ? "right" : "WRONG: ", complaint.c_str());
      std::fflush(stdout);
    }
  }
  return wrong;
}

/// All candidates of one layer; how many were wrong.
int run_layer(const bench::MeasuredLayer& layer, const KernelMap& map, const Options& options,
              const Stream& stream) {
  const ElementType operand = element_of(options.type);
  const KernelMapView view = map.view();
  test::CudaTileProblem problem(view, operand, layer.in_channels, layer.out_channels, 1, stream);
  const cuda::TileProblem described{
      .operand = operand,
      .output = operand == ElementType::tf32 ? ElementType::f32 : operand,
      .write = options.splits == 1 ? Write::store
               : options.slots     ? Write::slots
                                   : Write::add,
      .in_channels = layer.in_channels,
      .out_channels = layer.out_channels,
      .rows = view.out_rows,
      .offsets = view.offsets,
      .architecture = cuda::architecture_bit(stream.device())};
  const TileSpec chosen = cuda::choose_tile(described);
  int wrong = 0;
  for (const TileSpec& spec : cuda::tile_candidates(described)) {
    const std::string name = cuda::tile_name(spec);
    if (options.chosen && !(spec == chosen)) continue;
    if (name.find(options.spec) == std::string::npos) continue;
    auto run = problem.prepare(spec, options.splits);
    const test::Complaint complaint = problem.check(run);
    wrong += complaint.empty() ? 0 : 1;
    const Times times = measure(problem, run, stream, options.quick);
    std::printf(
        "%-12s %4d x %-4d %-48s %8.1f (%.1f … %.1f) us %6.1f TFLOP/s  x%.2f %s%s%s\n", layer.scene,
        layer.in_channels, layer.out_channels, name.c_str(), times.median, times.fastest,
        times.slowest, problem.useful_flop() / times.median * 1e-6,
        static_cast<double>(run.host->multiplied_rows()) / static_cast<double>(problem.pairs()),
        spec == chosen ? "chosen " : "",
        complaint.empty() ? "right" : "WRONG: ", complaint.c_str());
    if (layer.bar > 0) std::printf("%28s bar %.0f us\n", "", layer.bar);
    std::fflush(stdout);
  }
  return wrong;
}

int run(const Options& options) {
  if (!cuda_support().available) {
    std::fprintf(stderr, "CUDA is not available: %s\n", cuda_support().reason.c_str());
    return 1;
  }
  const Device device{DeviceKind::cuda, 0};
  const Stream stream(device);
  std::printf("%s, %s\n", cuda_device_info(0).name.c_str(), options.type.c_str());
  int wrong = 0;
  std::string loaded;
  KernelMapPtr map;
  for (const bench::MeasuredLayer& layer : bench::kMeasuredLayers) {
    const std::string channels =
        std::to_string(layer.in_channels) + "x" + std::to_string(layer.out_channels);
    if (!options.scene.empty() && options.scene != layer.scene) continue;
    if (!options.channels.empty() && options.channels != channels) continue;
    if (loaded != layer.scene) {
      map = bench::scene_map(layer.scene);
      loaded = layer.scene;
      std::printf("-- %s: %lld rows, %.2f pairs a row\n", layer.scene,
                  static_cast<long long>(map->view().out_rows),
                  static_cast<double>(map->pairs()) / static_cast<double>(map->view().out_rows));
    }
    wrong += options.gradient ? run_gradients(layer, *map, options, stream)
                              : run_layer(layer, *map, options, stream);
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}   // namespace

int main(int count, char** arguments) {
  try {
    return run(parse(count, arguments));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
