// All maps of MinkUNet42 on a CUDA device, from int32 coordinates, as one graph that is replayed:
// five levels in one sort, 3x3x3 submanifold maps, and the strided maps between levels both ways.
// Then, launch by launch, how long each kernel takes in a stream that is never empty.
//
//     PUMICE_DATA=… pumice_device_map_benchmark
#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pumice/coords/set_operations.hpp>
#include <pumice/core/arena.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/build.hpp>

#include "../points/scans.hpp"
#include "coords/cuda/create_sets.hpp"
#include "coords/cuda/fill_list.hpp"
#include "core/cuda/graph.hpp"
#include "formats/cuda/cut_maps.hpp"
#include "jit/module.hpp"

namespace pumice::bench {
namespace {

constexpr int kLevels = 5;
constexpr int kReplays = 20;
constexpr int kBatches = 20;

/// Launches, and remembers when each kernel was done.
class TimingRunner final : public jit::KernelRunner {
 public:
  TimingRunner(StreamView stream, std::shared_ptr<Allocator> allocator, StatusRecord* status)
      : KernelRunner(stream, std::move(allocator), status) {
    mark("");
  }
  void print(const std::vector<std::vector<double>>& runs) const {
    for (std::size_t i = 1; i < names_.size(); ++i) {
      std::vector<double> times;
      for (const auto& run : runs)
        times.push_back(run[i]);
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      std::printf("  %-20s %7.1f us\n", names_[i].c_str(), 1e3 * times[times.size() / 2]);
    }
  }
  std::vector<double> milliseconds() const {
    std::vector<double> times(events_.size(), 0);
    for (std::size_t i = 1; i < events_.size(); ++i)
      times[i] = milliseconds_between(events_[i - 1], events_[i]);
    return times;
  }

 private:
  void run_bytes(const jit::KernelName& kernel, const jit::LaunchShape& shape,
                 const void* arguments, std::size_t bytes) override {
    const jit::Module& module = jit::load(stream().device, *kernel.source);
    jit::detail::launch_bytes(module.kernel(kernel.name), shape, stream(), arguments, bytes);
    mark(kernel.name);
  }
  void mark(const char* name) {
    names_.emplace_back(name);
    events_.emplace_back(stream().device, true).record(stream());
  }
  std::vector<std::string> names_;
  std::vector<Event> events_;
};

struct Network {
  cuda::CreatedSets sets;
  std::vector<cuda::CutMap> maps;
};

struct Problem {
  Buffer<std::int32_t> coordinates;
  Buffer<std::int64_t> count;
  cuda::CreateOptions options;
  std::unique_ptr<cuda::DeviceWindow> cube;
  std::unique_ptr<cuda::DeviceWindow> half;
  std::vector<std::int64_t> entries;   // room for each submanifold map's
};

KernelWindow halving_window() {
  KernelWindow window;
  window.size = axes(3, 2);
  window.stride = axes(3, 2);
  return window;
}

void make_sets(jit::KernelRunner& runner, const Problem& problem, Network& network,
               std::span<std::uint32_t> also_zeroed = {}) {
  const std::int64_t capacity = problem.options.capacities[0].rows;
  cuda::CreateOptions options = problem.options;
  options.also_zeroed = also_zeroed;
  network.sets = cuda::create_sets(
      runner, {problem.coordinates.data(), {problem.count.data(), capacity}}, options);
}

using Requests = std::vector<cuda::CutRequest>;

Requests submanifold_requests(const Problem& problem, const Network& network) {
  Requests requests;
  for (std::size_t k = 0; k < kLevels; ++k) {
    const auto set = network.sets.sets[k].ref();
    requests.push_back({{set, set, problem.cube.get(), Reach::out_to_in},
                        cuda::TileOptions{.entry_capacity = problem.entries[k]}});
    requests.back().is_centred = true;
  }
  return requests;
}

Requests strided_requests(const Problem& problem, const Network& network) {
  Requests requests;
  for (std::size_t k = 0; k + 1 < kLevels; ++k) {
    const auto fine = network.sets.sets[k].ref();
    const auto coarse = network.sets.sets[k + 1].ref();
    requests.push_back({{fine, coarse, problem.half.get(), Reach::out_to_in}, cuda::TileOptions{}});
    requests.push_back({{coarse, fine, problem.half.get(), Reach::in_to_out}, cuda::TileOptions{}});
  }
  return requests;
}

/// All that a network asks for, built together.
Requests all_requests(const Problem& problem, const Network& network) {
  Requests requests = submanifold_requests(problem, network);
  for (const auto& request : strided_requests(problem, network))
    requests.push_back(request);
  return requests;
}

/// Sets and maps as a plan makes them.
void make_all(jit::KernelRunner& runner, const Problem& problem, Network& network,
              std::int64_t zeroed_bytes) {
  const cuda::ZeroedRoom zeroed(zeroed_bytes, runner.stream(), runner.allocator());
  make_sets(runner, problem, network, zeroed.words);
  network.maps = cuda::cut_maps(runner, all_requests(problem, network), zeroed.arena);
}

/// Pairs, or tiles of 64 rows, of the submanifold maps: searched for, or from the match that they
/// have.
Requests more_requests(const Problem& problem, const Network& network, bool pairs, bool matched) {
  Requests requests = submanifold_requests(problem, network);
  for (std::size_t k = 0; k < kLevels; ++k) {
    if (matched) requests[k].earlier = network.maps[k].ordered();
    if (pairs) {
      requests[k].tiles.reset();
      requests[k].pairs = cuda::PairOptions{};
    } else {
      requests[k].tiles = cuda::TileOptions{.tile_rows = 64};
    }
  }
  return requests;
}

Problem make_problem(jit::KernelRunner& runner, const CoordinateSetPtr& set, double margin) {
  Problem problem;
  CoordinateSetPtr level = set;
  for (int k = 0; k < kLevels; ++k) {
    if (k > 0) level = coarsen(*level, axes(3, 2));
    const auto rows = static_cast<std::int64_t>(static_cast<double>(level->size()) * margin);
    const auto blocks =
        static_cast<std::int64_t>(static_cast<double>(level->index().blocks) * margin) + 1;
    problem.options.capacities.push_back({rows, std::min(blocks, rows)});
    problem.entries.push_back(0);
  }
  problem.options.layout = set->layout();
  problem.options.columns.low = {0, -(1 << 20), -(1 << 20), -(1 << 20)};
  problem.options.columns.high = {0, 1 << 20, 1 << 20, 1 << 20};
  const std::int64_t capacity = problem.options.capacities[0].rows;
  problem.coordinates = runner.make<std::int32_t>(capacity * 4);
  problem.count = runner.make<std::int64_t>(1);
  const std::int64_t rows = set->size();
  const StreamView stream = runner.stream();
  copy_async(problem.coordinates.data(), stream.device, set->coordinates().raw(), {},
             set->coordinates().bytes(), stream);
  copy_async(problem.count.data(), stream.device, &rows, {}, sizeof(rows), stream);
  problem.cube =
      std::make_unique<cuda::DeviceWindow>(runner, submanifold_window(3, axes(3, 3), axes(3, 1)));
  problem.half = std::make_unique<cuda::DeviceWindow>(runner, halving_window());
  wait(stream);
  return problem;
}

/// Median, smallest and largest of batches of replays, in microseconds a replay.
void time_graph(const char* what, StreamView stream, const std::function<void()>& work) {
  work();   // compiles
  wait(stream);
  const auto graph = cuda::Graph::capture(stream, work);
  Event begin(stream.device, true);
  Event end(stream.device, true);
  std::vector<double> times;
  for (int batch = 0; batch < kBatches + 2; ++batch) {
    begin.record(stream);
    for (int i = 0; i < kReplays; ++i)
      graph.launch();
    end.record(stream);
    wait(stream);
    if (batch >= 2) times.push_back(1e3 * milliseconds_between(begin, end) / kReplays);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-34s %3zu nodes %8.1f us (%.1f to %.1f)\n", what, graph.nodes(),
              times[times.size() / 2], times.front(), times.back());
}

void print_launches(StreamView stream, const Problem& problem, StatusRecord* status,
                    std::int64_t zeroed_bytes) {
  constexpr int kRuns = 11;
  std::vector<std::vector<double>> runs;
  std::unique_ptr<TimingRunner> timing;
  for (int run = 0; run < kRuns; ++run) {
    const auto arena = std::make_shared<ArenaAllocator>(std::int64_t{1} << 30, stream);
    Buffer<std::byte> load(std::int64_t{4} << 30, stream, cuda_allocator(stream.device.index));
    fill_bytes_async(load.data(), std::byte{1}, load.bytes(), stream);   // the host runs ahead
    timing = std::make_unique<TimingRunner>(stream, arena, status);
    Network network;
    make_all(*timing, problem, network, zeroed_bytes);
    wait(stream);
    runs.push_back(timing->milliseconds());
  }
  std::printf("launch by launch, median of %d runs, each with the 1 to 2 us that an event takes\n",
              kRuns);
  timing->print(runs);
}

/// What training asks for when tiles are there.
void time_matched(StreamView stream, jit::KernelRunner& runner, const Problem& problem,
                  Network& network) {
  Requests tiles = submanifold_requests(problem, network);
  for (cuda::CutRequest& request : tiles)
    request.keeps_order = true;
  network.maps = cuda::cut_maps(runner, tiles);
  std::vector<cuda::CutMap> made;
  const auto time_more = [&](const char* what, bool pairs, bool matched) {
    time_graph(what, stream, [&] {
      made = cuda::cut_maps(runner, more_requests(problem, network, pairs, matched));
    });
  };
  time_more("their pairs, searched for", true, false);
  time_more("their pairs, from the match", true, true);
  time_more("tiles of 64 rows, searched for", false, false);
  time_more("tiles of 64 rows, from the match", false, true);
}

void run(double margin) {
  const Tensor coordinates =
      voxelize(one_scan().cloud, one_scan().features, {.size = {0.05f, 0.05f, 0.05f}}).coordinates;
  const auto set = CoordinateSet::create(coordinates, {.batch_size = 1});
  const Stream stream({DeviceKind::cuda, 0});
  jit::DeviceRunner plain(stream, cuda_allocator(0));
  Problem problem = make_problem(plain, set, margin);
  std::printf("%ld voxels, room for %ld, %d bits of key\n", static_cast<long>(set->size()),
              static_cast<long>(problem.options.capacities[0].rows), key_bits(set->layout()));

  const auto arena = std::make_shared<ArenaAllocator>(std::int64_t{8} << 30, stream);
  jit::DeviceRunner runner(stream, arena);
  Network network;
  Network scratch;
  make_sets(runner, problem, network);
  network.maps = cuda::cut_maps(runner, submanifold_requests(problem, network));
  wait(stream);
  for (std::size_t k = 0; k < kLevels; ++k) {
    const auto& map = network.maps[k];
    const auto entries = copy_to_host(map.entries().count, 1, stream)[0];
    const auto rows = copy_to_host(network.sets.sets[k].rows().count, 1, stream)[0];
    problem.entries[k] = static_cast<std::int64_t>(static_cast<double>(entries) * margin);
    std::printf(
        "level %zu: %ld rows, %ld entries, %.1f bytes a row\n", k, static_cast<long>(rows),
        static_cast<long>(entries),
        static_cast<double>(entries * (128 * 4 + 4) + 4 * rows) / static_cast<double>(rows));
  }
  time_graph("five levels", stream, [&] { make_sets(runner, problem, scratch); });
  const auto time_maps = [&](const char* what,
                             Requests (*requests)(const Problem&, const Network&)) {
    time_graph(what, stream,
               [&] { network.maps = cuda::cut_maps(runner, requests(problem, network)); });
  };
  time_maps("five submanifold maps", submanifold_requests);
  time_matched(stream, runner, problem, network);
  time_maps("eight strided maps", strided_requests);
  time_maps("these thirteen together", all_requests);
  const std::int64_t zeroed_bytes = cuda::zeroed_bytes(all_requests(problem, network));
  time_graph("all of MinkUNet42's", stream,
             [&] { make_all(runner, problem, network, zeroed_bytes); });
  print_launches(stream, problem, runner.status(), zeroed_bytes);
}

}   // namespace
}   // namespace pumice::bench

int main() {
  if (!pumice::cuda_support().available) {
    std::fprintf(stderr, "CUDA is not available: %s\n", pumice::cuda_support().reason.c_str());
    return 1;
  }
  for (const double margin : {1.1, 4.0})
    pumice::bench::run(margin);
}
