// Neighbour sampling and generated graphs.
#include <cstdint>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>
#include <pumice/graphs/generate.hpp>
#include <pumice/graphs/sample.hpp>

#include "arguments.hpp"
#include "graphs.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

struct Sampled {
  NeighbourSample sample;
  std::vector<GraphHandle> blocks;   // as layers run: that of the last hop first
};

nb::tuple sample(const GraphHandle& graph, nb::handle seeds, std::vector<std::int64_t> fan_outs,
                 bool replace, std::uint64_t seed, std::uint64_t batch, nb::handle edge_type) {
  const Call call(seeds);
  const ConstTensorView nodes = call.view(seeds, "seeds");
  const ConstTensorView type = call.view(edge_type, "edge_type");
  PUMICE_EXPECTS(nodes.dtype() == DType::i64 && nodes.rank() == 1 && call.on_cpu(),
                 "seeds are no int64 [S] on the CPU: give numbers of nodes");
  const SampleOptions options{
      .fan_outs = std::move(fan_outs), .replace = replace, .seed = seed, .batch = batch};
  const Sampled made = call.run([&] {
    Sampled result{
        .sample = sample_neighbours(graph.view(), nodes.span<std::int64_t>(), options, type),
        .blocks = {}};
    for (std::size_t hop = result.sample.hops(); hop-- > 0;) {
      Graph block(copy_to(StreamView{}, result.sample.block(hop)));
      result.blocks.push_back({std::make_shared<SharedGraph>(std::move(block))});
    }
    return result;
  });
  nb::list blocks;
  for (const GraphHandle& block : made.blocks)
    blocks.append(block);
  return nb::make_tuple(share(made.sample.node), share(made.sample.entry),
                        made.sample.type.defined() ? share(made.sample.type) : nb::none(), blocks);
}

/// What `make` returns, made without the GIL.
template <class Make> nb::object generated(Make&& make) {
  return share(Call(Device{}).run(make));
}

nb::object power_law(std::int64_t nodes, std::int64_t edges, std::uint64_t seed,
                     double target_exponent, double source_exponent) {
  return generated([&] {
    return power_law_edges({.nodes = nodes,
                            .edges = edges,
                            .seed = seed,
                            .target_exponent = target_exponent,
                            .source_exponent = source_exponent});
  });
}

nb::object rmat(int scale, std::int64_t edges, std::uint64_t seed, double first_first,
                double first_second, double second_first) {
  return generated([&] {
    return rmat_edges(scale, edges, seed, {first_first, first_second, second_first});
  });
}

nb::object grid(const std::vector<std::int64_t>& extents, bool wraps) {
  return generated([&] { return grid_edges(extents, wraps); });
}

}   // namespace

void bind_samples(nb::module_& module) {
  define(module, "sample_neighbours", &sample, "graph"_a, "seeds"_a, "fan_outs"_a, "replace"_a,
         "seed"_a, "batch"_a, "edge_type"_a.none(),
         "(int64 [nodes] the seeds first, int64 [entries] their numbers, int64 [entries] their "
         "types or None, graphs of the layers, that of the last hop first)");
  define(module, "power_law_edges", &power_law, "nodes"_a, "edges"_a, "seed"_a, "target_exponent"_a,
         "source_exponent"_a, "int64 [2, edges]");
  define(module, "rmat_edges", &rmat, "scale"_a, "edges"_a, "seed"_a, "first_first"_a,
         "first_second"_a, "second_first"_a, "int64 [2, edges]");
  define(module, "grid_edges", &grid, "extents"_a, "wraps"_a, "int64 [2, edges]");
}

}   // namespace pumice::python
