// Samples hop by hop: how many entries each node has, which these are, and what is new among the
// nodes where they come from.
#include <pumice/graphs/sample.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "graphs/cpu/draw.hpp"
#include "graphs/cpu/node_numbers.hpp"
#include "graphs/entry_numbers.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kRows = 256;                        // nodes a task draws for
constexpr std::int64_t kEntries = std::int64_t{1} << 14;   // entries a task copies

/// What one hop adds.
struct Hop {
  Buffer<std::int64_t> row_begin{};   // [nodes + 1], from 0 on
  Buffer<std::int64_t> place{};       // [entries] in the graph
  Buffer<std::int32_t> column{};      // [entries] numbers in the sample
};

void check_arguments(const CsrView& graph, const SampleOptions& options, ConstTensorView type) {
  PUMICE_EXPECTS(graph.device.kind == DeviceKind::cpu, "sample_neighbours: the graph is on ",
                 to_string(graph.device), ": give one on the CPU, as copy_to_host makes");
  PUMICE_EXPECTS(graph.rows == graph.columns, "sample_neighbours: the graph has ", graph.columns,
                 " sources and ", graph.rows,
                 " targets: give one whose sources and targets are the same nodes");
  PUMICE_EXPECTS(!options.fan_outs.empty(),
                 "sample_neighbours: there are no fan-outs: give one for each hop, as {15, 10}");
  for (std::size_t hop = 0; hop < options.fan_outs.size(); ++hop) {
    PUMICE_EXPECTS(options.fan_outs[hop] >= -1, "sample_neighbours: fan_outs[", hop,
                   "] = ", options.fan_outs[hop], ": give a number of edges, or -1 for all");
  }
  if (!type.defined()) return;
  const bool is_list =
      type.rank() == 1 && (type.dtype() == DType::i32 || type.dtype() == DType::i64);
  PUMICE_EXPECTS(is_list && type.rows() == graph.entries() && type.device() == graph.device,
                 "sample_neighbours: type is ", name_of(type.dtype()), ' ', to_string(type.shape()),
                 " on ", to_string(type.device()), ": give i32 or i64 [", graph.entries(),
                 "] on the CPU, the type of each entry");
}

/// The seeds get the first numbers, and so each has its own.
void number_seeds(const CsrView& graph, std::span<const std::int64_t> seeds,
                  cpu::NodeNumbers& numbers) {
  check_numbers(seeds, graph.rows, "sample_neighbours", "seeds");
  const auto count = static_cast<std::int64_t>(seeds.size());
  Buffer<std::int32_t> named(count), number(count);
  std::ranges::transform(seeds, named.data(),
                         [](std::int64_t seed) { return static_cast<std::int32_t>(seed); });
  numbers.number(std::as_const(named).span(), number.span());
  for (std::int64_t i = 0; i < count; ++i) {
    PUMICE_EXPECTS(number[i] == i, "sample_neighbours: seeds[", i, "] = ", named[i],
                   " stands at seeds[", number[i], "] already: give each node once");
  }
}

std::int64_t drawn_of(std::int64_t degree, std::int64_t fan_out, bool replace) {
  if (fan_out < 0 || degree == 0) return degree;
  return replace ? fan_out : std::min(degree, fan_out);
}

/// Where the entries of each node begin.
Buffer<std::int64_t> bounds_of(const CsrView& graph, std::span<const std::int32_t> nodes,
                               std::int64_t fan_out, bool replace) {
  const auto count = static_cast<std::int64_t>(nodes.size());
  Buffer<std::int64_t> begin(count + 1);
  parallel_for(count, kRows * 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t node = nodes[static_cast<std::size_t>(i)];
      begin[i + 1] = drawn_of(graph.end_of(node) - graph.begin_of(node), fan_out, replace);
    }
  });
  begin[0] = 0;
  for (std::int64_t i = 0; i < count; ++i)
    begin[i + 1] += begin[i];
  return begin;
}

/// The places of the entries that are drawn for nodes of one hop, and the nodes these come from.
void draw(const CsrView& graph, std::span<const std::int32_t> nodes, const SampleOptions& options,
          std::size_t hop, Hop& made, Buffer<std::int32_t>& source) {
  const std::uint64_t key =
      mix_bits(mix_bits(mix_bits(options.seed) ^ options.batch) + static_cast<std::uint64_t>(hop));
  const std::int64_t fan_out = options.fan_outs[hop];
  parallel_for(
      static_cast<std::int64_t>(nodes.size()), kRows, [&](std::int64_t first, std::int64_t last) {
        cpu::DrawScratch scratch;
        for (std::int64_t i = first; i < last; ++i) {
          const std::int32_t node = nodes[static_cast<std::size_t>(i)];
          const std::int64_t begin = graph.begin_of(node), degree = graph.end_of(node) - begin;
          const std::int64_t to = made.row_begin[i], count = made.row_begin[i + 1] - to;
          const std::span<std::int64_t> drawn(made.place.data() + to,
                                              static_cast<std::size_t>(count));
          const Random random(key, static_cast<std::uint64_t>(node));
          if (fan_out < 0 || (!options.replace && count == degree)) {
            for (std::int64_t e = 0; e < count; ++e)
              drawn[static_cast<std::size_t>(e)] = e;
          } else if (options.replace) {
            cpu::draw_any(random, degree, drawn);
          } else {
            cpu::draw_different(random, degree, drawn, scratch);
          }
          for (std::int64_t e = to; e < to + count; ++e) {
            made.place[e] += begin;
            source[e] = graph.column[static_cast<std::size_t>(made.place[e])];
          }
        }
      });
}

Hop sample_hop(const CsrView& graph, std::int64_t first, const SampleOptions& options,
               std::size_t hop, cpu::NodeNumbers& numbers) {
  const auto nodes = numbers.nodes().subspan(static_cast<std::size_t>(first));
  Hop made{.row_begin = bounds_of(graph, nodes, options.fan_outs[hop], options.replace)};
  const std::int64_t entries = made.row_begin[made.row_begin.size() - 1];
  PUMICE_EXPECTS(entries <= cpu::NodeNumbers::kMostEntries, "sample_neighbours: hop ", hop, " of ",
                 nodes.size(), " nodes has ", entries,
                 " entries: give fewer seeds or a smaller fan-out, for less than 2^31");
  made.place = Buffer<std::int64_t>(entries);
  made.column = Buffer<std::int32_t>(entries);
  Buffer<std::int32_t> source(entries);
  draw(graph, nodes, options, hop, made, source);
  numbers.reserve(std::min(entries, graph.rows - numbers.size()));
  numbers.number(std::as_const(source).span(), made.column.span());
  return made;
}

/// The hops behind each other, with places become numbers.
void join(const CsrView& graph, const std::vector<Hop>& hops, ConstTensorView type,
          NeighbourSample& made) {
  std::int64_t rows = 0, entries = 0;
  for (const Hop& hop : hops) {
    rows += hop.row_begin.size() - 1;
    entries += hop.column.size();
  }
  made.row_begin = Buffer<std::int64_t>(rows + 1);
  made.row_begin[0] = 0;
  made.column = Buffer<std::int32_t>(entries);
  made.entry = Tensor({entries}, DType::i64);
  if (type.defined()) made.type = Tensor({entries}, DType::i64);
  auto* const entry = made.entry.data<std::int64_t>();
  auto* const kind = type.defined() ? made.type.data<std::int64_t>() : nullptr;
  std::int64_t row = 0, before = 0;
  for (const Hop& hop : hops) {
    const std::int64_t size = hop.column.size();
    for (std::int64_t i = 1; i < hop.row_begin.size(); ++i)
      made.row_begin[++row] = before + hop.row_begin[i];
    parallel_for(size, kEntries, [&](std::int64_t begin, std::int64_t end) {
      std::copy(hop.column.data() + begin, hop.column.data() + end,
                made.column.data() + before + begin);
      for (std::int64_t e = begin; e < end; ++e)
        entry[before + e] = graph.number_of(hop.place[e]);
      if (kind == nullptr) return;
      with_numbers(type, [&](auto types) {
        for (std::int64_t e = before + begin; e < before + end; ++e)
          kind[e] = static_cast<std::int64_t>(types[static_cast<std::size_t>(entry[e])]);
      });
    });
    before += size;
  }
}

}   // namespace

CsrView NeighbourSample::block(std::size_t hop) const& {
  PUMICE_EXPECTS(hop < hops(), "block: hop ", hop, " of ", hops(), ": give a number below that");
  const std::int64_t rows = nodes_within[hop];
  return {.rows = rows,
          .columns = nodes_within[hop + 1],
          .row_begin = row_begin.span().first(static_cast<std::size_t>(rows) + 1),
          .column = column.span().first(static_cast<std::size_t>(row_begin[rows]))};
}

NeighbourSample sample_neighbours(const CsrView& graph, std::span<const std::int64_t> seeds,
                                  const SampleOptions& options, ConstTensorView type) {
  check_arguments(graph, options, type);
  cpu::NodeNumbers numbers(static_cast<std::int64_t>(seeds.size()));
  number_seeds(graph, seeds, numbers);
  NeighbourSample made;
  made.nodes_within.push_back(numbers.size());
  std::vector<Hop> hops;
  std::int64_t first = 0;
  for (std::size_t hop = 0; hop < options.fan_outs.size(); ++hop) {
    hops.push_back(sample_hop(graph, first, options, hop, numbers));
    first = made.nodes_within.back();
    made.nodes_within.push_back(numbers.size());
  }
  join(graph, hops, type, made);
  made.node = Tensor({numbers.size()}, DType::i64);
  std::ranges::copy(numbers.nodes(), made.node.data<std::int64_t>());
  return made;
}

}   // namespace pumice
