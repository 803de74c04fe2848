// The convolutions of MinkUNet42 on a simulated sweep through TileMMA, beside what SGEMM reaches on
// a dense product of the same channels in the same run. Arguments: index of the layer, rows of a
// tile (0: those of the plan), threads.
//
// Counters are those of the fastest run. `ms` and `GFLOP/s` are wall clock and need an idle
// machine; `core` (GFLOP a second of processor time) and `sgemm_percent` (of SGEMM's `core`) stand
// some company.
#include <algorithm>

#include <benchmark/benchmark.h>
#include <time.h>

#include <pumice/core/parallel.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/dense_gemm.hpp>
#include <pumice/kernels/gather_gemm_scatter.hpp>
#include <pumice/kernels/tile_mma.hpp>
#include <pumice/plan/choose.hpp>

#include "street_levels.hpp"

namespace {

using namespace pumice;
using namespace pumice::bench;

struct Seconds {
  double wall = 1e9;
  double processor = 1e9;   // of all threads together
};

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Seconds seconds_of(auto&& body) {
  const double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
  body();
  return {now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - processor};
}

void keep_best(Seconds& best, const Seconds& seconds) {
  best.wall = std::min(best.wall, seconds.wall);
  best.processor = std::min(best.processor, seconds.processor);
}

/// GFLOP a second of processor time of SGEMM on operands of these channels, threads side by side.
double sgemm_rate(std::int64_t in_channels, std::int64_t out_channels) {
  constexpr std::int64_t kRows = 4096;
  constexpr std::int64_t kPieces = 16;   // shared by the threads
  const Tensor a = random_tensor(Shape{kRows, in_channels}, DType::f32, 1);
  const Tensor b = random_tensor(Shape{in_channels, out_channels}, DType::f32, 2);
  Tensor c(Shape{kPieces, kRows, out_channels}, DType::f32);
  Seconds best;
  for (int repetition = 0; repetition < 5; ++repetition) {
    keep_best(best, seconds_of([&] {
                parallel_for(kPieces, 1, [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t piece = begin; piece < end; ++piece) {
                    dense_gemm(kRows, out_channels, in_channels, a.data<float>(), in_channels,
                               b.data<float>(), out_channels,
                               c.data<float>() + piece * kRows * out_channels, out_channels, false);
                  }
                });
              }));
  }
  return 2e-9 * static_cast<double>(kPieces * kRows * in_channels * out_channels) / best.processor;
}

std::int64_t tile_rows_of(const benchmark::State& state, const Layer& layer,
                          const KernelMapView& map, DType dtype) {
  if (state.range(1) > 0) return state.range(1);
  return choose({.direction = Direction::forward,
                 .in_rows = map.in_rows,
                 .out_rows = map.out_rows,
                 .pairs = map.pairs(),
                 .offsets = map.offsets,
                 .in_channels = layer.in_channels,
                 .out_channels = layer.out_channels,
                 .groups = 1,
                 .dtype = dtype},
                target_of({}))
      ->tile_rows;
}

struct Case {
  Case(benchmark::State& state, DType dtype)
      : layer(kLayers[static_cast<std::size_t>(state.range(0))]),
        map(street_levels()[static_cast<std::size_t>(layer.level)]->view()),
        tile_rows(tile_rows_of(state, layer, map, dtype)),
        tiles(map, tile_rows),
        input(random_tensor(Shape{map.in_rows, layer.in_channels}, dtype, 1)),
        weight(random_tensor(Shape{map.offsets, layer.in_channels, layer.out_channels}, dtype, 2)),
        output(Shape{map.out_rows, layer.out_channels}, dtype) {
    set_threads(static_cast<int>(state.range(2)));
    rate = sgemm_rate(layer.in_channels, layer.out_channels);
  }

  void report(benchmark::State& state, const Seconds& best) const {
    const double flop =
        2.0 * static_cast<double>(map.pairs()) * layer.in_channels * layer.out_channels;
    state.SetLabel(detail::concatenate(map.out_rows, " rows, ", layer.in_channels, " -> ",
                                       layer.out_channels, ", tiles of ", tile_rows));
    const double core = flop / best.processor * 1e-9;
    state.counters["ms"] = best.wall * 1e3;
    state.counters["GFLOP/s"] = flop / best.wall * 1e-9;
    state.counters["core"] = core;
    state.counters["sgemm_percent"] = 100 * core / rate;
  }

  Layer layer;
  KernelMapView map;
  std::int64_t tile_rows;
  RelationTiles tiles;
  Tensor input, weight, output;
  double rate = 0;
};

/// Runs `body` and reports its fastest run.
void measure(benchmark::State& state, const Case& problem, auto&& body) {
  Seconds best;
  for ([[maybe_unused]] auto _ : state) {
    const Seconds seconds = seconds_of(body);
    state.SetIterationTime(seconds.wall);
    keep_best(best, seconds);
  }
  problem.report(state, best);
  set_threads(0);
}

void tile_mma_of(benchmark::State& state, DType dtype) {
  Case problem(state, dtype);
  const WeightPanels packed(problem.weight, 1, false);
  measure(state, problem, [&] {
    tile_mma({.input = problem.input,
              .weight = &packed,
              .tiles = problem.tiles.view(),
              .output = problem.output.view()});
  });
}

void gather_gemm_scatter_of(benchmark::State& state) {
  Case problem(state, DType::f32);
  measure(state, problem, [&] {
    gather_gemm_scatter({.input = problem.input,
                         .weight = problem.weight,
                         .tiles = problem.tiles.view(),
                         .output = problem.output.view()});
  });
}

void weight_gradient_of(benchmark::State& state) {
  Case problem(state, DType::f32);
  const Tensor grad = random_tensor(problem.output.shape(), DType::f32, 3);
  measure(state, problem, [&] {
    const Tensor result = weight_gradient(problem.input, grad, problem.map, 1);
    benchmark::DoNotOptimize(result.raw());
  });
}

void pack_of(benchmark::State& state) {
  Case problem(state, DType::f32);
  measure(state, problem, [&] {
    const WeightPanels packed(problem.weight, 1, state.range(1) != 0);
    benchmark::DoNotOptimize(packed.data());
  });
}

void layers(benchmark::internal::Benchmark* benchmark, std::initializer_list<int> tile_rows) {
  benchmark->ArgNames({"layer", "tile_rows", "threads"})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  for (std::size_t layer = 0; layer < kLayers.size(); ++layer) {
    for (const int rows : tile_rows) {
      for (const int count : {1, 2})
        benchmark->Args({static_cast<int>(layer), rows, count});
    }
  }
}

BENCHMARK_CAPTURE(tile_mma_of, f32, DType::f32)->Apply([](auto* b) {
  layers(b, {0, 64, 128, 256, 512, 1024});
});
BENCHMARK_CAPTURE(tile_mma_of, f16, DType::f16)->Apply([](auto* b) { layers(b, {0}); });
BENCHMARK_CAPTURE(tile_mma_of, bf16, DType::bf16)->Apply([](auto* b) { layers(b, {0}); });
BENCHMARK_CAPTURE(tile_mma_of, f64, DType::f64)->Apply([](auto* b) { layers(b, {0}); });
BENCHMARK(gather_gemm_scatter_of)->Apply([](auto* b) { layers(b, {0, 4096}); });
BENCHMARK(weight_gradient_of)->Apply([](auto* b) { layers(b, {0}); });
BENCHMARK(pack_of)->Apply([](auto* b) { layers(b, {0, 1}); });

}   // namespace
