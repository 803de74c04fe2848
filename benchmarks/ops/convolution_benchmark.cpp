// Whole convolutions on the maps of a simulated sweep: which dataflow is fastest where, what
// cutting the structure costs beside the products, and how many rows a tile should have. The
// thresholds of src/plan/convolution_plan.cpp come from here. One thread, so that its CPU time is
// the work done.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <pumice/core/parallel.hpp>
#include <pumice/formats/output_table.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/dense_gemm.hpp>
#include <pumice/ops/convolution.hpp>

#include "../kernels/street_levels.hpp"

namespace pumice::bench {
namespace {

void count_flop(benchmark::State& state, double flop) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flop * 1e-9, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

/// The map from a level to the next coarser one.
const KernelMapPtr& halving_map(int level) {
  static const std::vector<KernelMapPtr> maps = [] {
    KernelWindow window;
    window.size = window.stride = axes(3, 2);
    std::vector<KernelMapPtr> result;
    for (const KernelMapPtr& map : street_levels()) {
      result.push_back(strided_map(map->in(), window, StridedOutputs::cell));
    }
    return result;
  }();
  return maps[static_cast<std::size_t>(level)];
}

/// The 3³ map of a grid without a hole: 94 % of all (output, offset) are pairs.
const KernelMapPtr& dense_grid_map() {
  static const KernelMapPtr map = [] {
    constexpr std::int32_t kSide = 48;
    std::vector<std::int32_t> sites;
    for (std::int32_t x = 0; x < kSide; ++x) {
      for (std::int32_t y = 0; y < kSide; ++y) {
        for (std::int32_t z = 0; z < kSide; ++z)
          sites.insert(sites.end(), {0, x, y, z});
      }
    }
    const auto rows = static_cast<std::int64_t>(sites.size()) / 4;
    return submanifold_map(CoordinateSet::create(Tensor::from<std::int32_t>(sites, {rows, 4})),
                           submanifold_window(3, axes(3, 3), axes(3, 1)));
  }();
  return map;
}

struct Data {
  Tensor features, weight, gradient;
};

Data data_for(const KernelMapView& map, std::int64_t in_channels, std::int64_t out_channels,
              DType dtype) {
  return {random_tensor({map.in_rows, in_channels}, dtype, 1),
          random_tensor({map.offsets, in_channels, out_channels}, dtype, 2),
          random_tensor({map.out_rows, out_channels}, dtype, 3)};
}

double flop_of(const KernelMapView& map, std::int64_t in_channels, std::int64_t out_channels) {
  return 2.0 * static_cast<double>(map.pairs()) * static_cast<double>(in_channels * out_channels);
}

void forward(benchmark::State& state, const KernelMapView& map, std::int64_t in_channels,
             std::int64_t out_channels, std::optional<Dataflow> dataflow) {
  set_threads(1);
  const Data data = data_for(map, in_channels, out_channels, DType::f32);
  PackedWeights packed;
  const ConvolutionOptions options{.dataflow = dataflow, .kept = &packed};
  const PlanPtr plan =
      plan_of(convolution_problem(data.features, data.weight, map, options), map, options);
  for (auto _ : state) {
    benchmark::DoNotOptimize(convolution(data.features, data.weight, map, options).raw());
  }
  count_flop(state, flop_of(map, in_channels, out_channels));
  state.SetLabel(plan->name());
}

void input_gradient(benchmark::State& state, const KernelMapView& map, std::int64_t in_channels,
                    std::int64_t out_channels) {
  set_threads(1);
  const Data data = data_for(map, in_channels, out_channels, DType::f32);
  for (auto _ : state) {
    benchmark::DoNotOptimize(convolution_input_gradient(data.gradient, data.weight, map).raw());
  }
  count_flop(state, flop_of(map, in_channels, out_channels));
}

void weight_gradient_of(benchmark::State& state, const KernelMapView& map, std::int64_t in_channels,
                        std::int64_t out_channels) {
  set_threads(1);
  const Data data = data_for(map, in_channels, out_channels, DType::f32);
  for (auto _ : state) {
    benchmark::DoNotOptimize(convolution_weight_gradient(data.features, data.gradient, map).raw());
  }
  count_flop(state, flop_of(map, in_channels, out_channels));
}

/// What a layer pays before its first product.
void cut_tiles(benchmark::State& state, const KernelMapView& map, std::int64_t tile_rows) {
  set_threads(1);
  for (auto _ : state) {
    const RelationTiles tiles(map, tile_rows);
    benchmark::DoNotOptimize(tiles.view().begin);
  }
  state.SetItemsProcessed(state.iterations() * map.pairs());
}

void cut_table(benchmark::State& state, const KernelMapView& map, bool sorted) {
  set_threads(1);
  double density = 0;
  for (auto _ : state) {
    const OutputTable table(map, sorted, 1);
    const RelationTiles tiles = table.tiles(0, 512);
    benchmark::DoNotOptimize(tiles.view().begin);
    state.PauseTiming();
    density = table.density(512);
    state.ResumeTiming();
  }
  state.counters["density"] = density;
  state.SetItemsProcessed(state.iterations() * map.pairs());
}

void tile_rows(benchmark::State& state, const KernelMapView& map, std::int64_t in_channels,
               std::int64_t out_channels, std::int64_t rows) {
  set_threads(1);
  const Data data = data_for(map, in_channels, out_channels, DType::f32);
  const WeightPanels packed(data.weight, 1, false);
  const RelationTiles tiles(map, rows);
  Tensor output({map.out_rows, out_channels}, DType::f32);
  for (auto _ : state) {
    tile_mma({.input = data.features,
              .weight = &packed,
              .tiles = tiles.view(),
              .output = output.view()});
  }
  count_flop(state, flop_of(map, in_channels, out_channels));
}

/// The same product as a 1×1×1 convolution, by the dense library alone.
void dense(benchmark::State& state, std::int64_t rows, std::int64_t in_channels,
           std::int64_t out_channels) {
  const Tensor x = random_tensor({rows, in_channels}, DType::f32, 1);
  const Tensor w = random_tensor({in_channels, out_channels}, DType::f32, 2);
  for (auto _ : state) {
    Tensor y({rows, out_channels}, DType::f32);
    dense_gemm(rows, out_channels, in_channels, x.data<float>(), in_channels, w.data<float>(),
               out_channels, y.data<float>(), out_channels, false);
    benchmark::DoNotOptimize(y.raw());
  }
  count_flop(state, 2.0 * static_cast<double>(rows * in_channels * out_channels));
}

template <class Body> void add(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond);
}

const int kRegistered = [] {
  static const auto map_of = [](int level) {
    return street_levels()[static_cast<std::size_t>(level)]->view();
  };
  for (const Layer& l : kLayers) {
    const std::string layer = fmt::format("L{}/{}->{}", l.level, l.in_channels, l.out_channels);
    add("forward/plan/" + layer, [l](benchmark::State& state) {
      forward(state, map_of(l.level), l.in_channels, l.out_channels, std::nullopt);
    });
    for (const Dataflow dataflow :
         {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
      add(fmt::format("forward/{}/{}", name_of(dataflow), layer), [l, dataflow](auto& state) {
        forward(state, map_of(l.level), l.in_channels, l.out_channels, dataflow);
      });
    }
    add("input_gradient/" + layer, [l](benchmark::State& state) {
      input_gradient(state, map_of(l.level), l.in_channels, l.out_channels);
    });
    add("weight_gradient/" + layer, [l](benchmark::State& state) {
      weight_gradient_of(state, map_of(l.level), l.in_channels, l.out_channels);
    });
    for (const std::int64_t rows : {64, 128, 256, 512, 1024, 2048, 4096}) {
      add(fmt::format("tile_rows/{}/{}", layer, rows), [l, rows](benchmark::State& state) {
        tile_rows(state, map_of(l.level), l.in_channels, l.out_channels, rows);
      });
    }
  }
  for (int level = 0; level < 5; ++level) {
    add(fmt::format("cut/tiles/L{}", level),
        [level](benchmark::State& state) { cut_tiles(state, map_of(level), 512); });
    add(fmt::format("cut/tiles_transposed/L{}", level),
        [level](benchmark::State& state) { cut_tiles(state, transposed(map_of(level)), 512); });
    for (const bool sorted : {false, true}) {
      add(fmt::format("cut/table{}/L{}", sorted ? "_sorted" : "", level),
          [level, sorted](benchmark::State& state) { cut_table(state, map_of(level), sorted); });
    }
  }
  for (const int level : {0, 2}) {
    for (const Dataflow dataflow :
         {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
      add(fmt::format("halving/{}/L{}/96->96", name_of(dataflow), level),
          [level, dataflow](benchmark::State& state) {
            forward(state, halving_map(level)->view(), 96, 96, dataflow);
          });
      add(fmt::format("inverse/{}/L{}/96->96", name_of(dataflow), level),
          [level, dataflow](benchmark::State& state) {
            forward(state, transposed(halving_map(level)->view()), 96, 96, dataflow);
          });
    }
  }
  for (const Dataflow dataflow :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    for (const std::int64_t channels : {32, 96}) {
      add(fmt::format("dense_grid/{}/{}", name_of(dataflow), channels),
          [dataflow, channels](benchmark::State& state) {
            forward(state, dense_grid_map()->view(), channels, channels, dataflow);
          });
    }
  }
  for (const std::int64_t channels : {32, 96, 256}) {
    add(fmt::format("pointwise/dense/L0/{}", channels), [channels](benchmark::State& state) {
      dense(state, map_of(0).in_rows, channels, channels);
    });
    for (const Dataflow dataflow : {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand}) {
      add(fmt::format("pointwise/{}/L0/{}", name_of(dataflow), channels),
          [channels, dataflow](benchmark::State& state) {
            static const KernelMapPtr map = submanifold_map(
                street_levels()[0]->in(), submanifold_window(3, axes(3, 1), axes(3, 1)));
            forward(state, map->view(), channels, channels, dataflow);
          });
    }
  }
  return 0;
}();

}   // namespace
}   // namespace pumice::bench
