// Edge e draws from a stream of its own, so that no cut into tasks shows in the result.
#include <pumice/graphs/generate.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 15;   // edges or nodes a task
constexpr std::int64_t kMostNodes = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostEdges = std::int64_t{1} << 40;

/// One seed for each use.
enum class Draw : unsigned char { degree, order, place, rmat };
std::uint64_t key_of(std::uint64_t seed, Draw draw) {
  return mix_bits(seed) + static_cast<std::uint64_t>(draw);
}

/// Uniform in (0, 1].
double above_zero(Random& random) {
  return 1.0 - random.uniform();
}

void check_edges(const char* op, std::int64_t nodes, std::int64_t edges) {
  PUMICE_EXPECTS(edges >= 0 && edges <= kMostEdges, op, ": edges = ", edges,
                 ": give 0 to 2^40 of them");
  PUMICE_EXPECTS(nodes >= 0 && nodes <= kMostNodes && (nodes > 0 || edges == 0), op,
                 ": nodes = ", nodes, " for ", edges, " edges: give 1 to 2147483647");
}

void check_exponent(const char* name, double exponent) {
  PUMICE_EXPECTS(exponent > 0 && exponent <= 1e3, "power_law_edges: ", name, " = ", exponent,
                 ": give a number above 0, to 1000");
}

/// The sums of the nodes' weights up to and with each: added up within chunks, and chunk after
/// chunk.
Buffer<double> weight_sums(const PowerLawOptions& options) {
  const double most = std::max(1.0, static_cast<double>(options.nodes) / 50);
  const std::uint64_t key = key_of(options.seed, Draw::degree);
  Buffer<double> sum(options.nodes);
  std::vector<double> before(static_cast<std::size_t>((options.nodes + kChunk - 1) / kChunk));
  parallel_for(options.nodes, kChunk, [&](std::int64_t begin, std::int64_t end) {
    double total = 0;
    for (std::int64_t node = begin; node < end; ++node) {
      Random random(key, static_cast<std::uint64_t>(node));
      total += std::min(std::pow(above_zero(random), -1 / options.target_exponent), most);
      sum[node] = total;
    }
    before[static_cast<std::size_t>(begin / kChunk)] = total;
  });
  std::exclusive_scan(before.begin(), before.end(), before.begin(), 0.0);
  parallel_for(options.nodes, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t node = begin; node < end; ++node)
      sum[node] += before[static_cast<std::size_t>(begin / kChunk)];
  });
  return sum;
}

/// Fisher and Yates.
Buffer<std::int32_t> random_order(std::int64_t nodes, std::uint64_t seed) {
  Buffer<std::int32_t> order(nodes);
  std::iota(order.data(), order.data() + nodes, 0);
  Random random(key_of(seed, Draw::order));
  for (std::int64_t i = nodes - 1; i > 0; --i)
    std::swap(order[i], order[random.integer(0, i)]);
  return order;
}

/// The quarter that a number from 0 to 2^32 - 1 stands for: source above, target below.
struct Quarters {
  explicit Quarters(const RmatShares& shares)
      : first(bound(shares.first_first)),
        second(bound(shares.first_first + shares.first_second)),
        third(bound(shares.first_first + shares.first_second + shares.second_first)) {}
  static std::uint64_t bound(double share) {
    return static_cast<std::uint64_t>(std::min(share, 1.0) * 0x1p32);
  }
  std::uint64_t first, second, third;

  unsigned of(std::uint64_t number) const {
    return unsigned{number >= first} + unsigned{number >= second} + unsigned{number >= third};
  }
};

}   // namespace

// The e-th of as many equal parts of all weights has one edge, somewhere in it: targets ascend, and
// there are exactly as many edges as were asked for.
Tensor power_law_edges(const PowerLawOptions& options) {
  check_edges("power_law_edges", options.nodes, options.edges);
  check_exponent("target_exponent", options.target_exponent);
  check_exponent("source_exponent", options.source_exponent);
  Tensor made({2, options.edges}, DType::i64);
  if (options.edges == 0) return made;
  const Buffer<double> sum = weight_sums(options);
  const Buffer<std::int32_t> order = random_order(options.nodes, options.seed);
  const std::uint64_t key = key_of(options.seed, Draw::place);
  const double total = sum[options.nodes - 1], width = total / static_cast<double>(options.edges);
  const double spread = static_cast<double>(options.nodes) / 50;
  const double last = static_cast<double>(options.nodes - 1);
  auto* const source = made.data<std::int64_t>();
  auto* const target = source + options.edges;
  parallel_for(options.edges, kChunk, [&](std::int64_t begin, std::int64_t end) {
    const double from = static_cast<double>(begin) * width;
    std::int64_t node = std::upper_bound(sum.data(), sum.data() + options.nodes, from) - sum.data();
    for (std::int64_t edge = begin; edge < end; ++edge) {
      Random random(key, static_cast<std::uint64_t>(edge));
      const double at = (static_cast<double>(edge) + random.uniform()) * width;
      while (node < options.nodes - 1 && sum[node] <= at)
        ++node;
      target[edge] = std::min(node, options.nodes - 1);
      const double far = (std::pow(above_zero(random), -1 / options.source_exponent) - 1) * spread;
      source[edge] = order[static_cast<std::int64_t>(std::min(far, last))];
    }
  });
  return made;
}

Tensor rmat_edges(int scale, std::int64_t edges, std::uint64_t seed, const RmatShares& shares) {
  PUMICE_EXPECTS(scale >= 0 && scale <= 30, "rmat_edges: scale = ", scale, ": give 0 to 30");
  check_edges("rmat_edges", std::int64_t{1} << scale, edges);
  const double sum = shares.first_first + shares.first_second + shares.second_first;
  PUMICE_EXPECTS(shares.first_first >= 0 && shares.first_second >= 0 && shares.second_first >= 0 &&
                     sum <= 1 + 1e-9,
                 "rmat_edges: shares ", shares.first_first, ", ", shares.first_second, " and ",
                 shares.second_first, ": give numbers from 0 on that add up to 1 at most");
  Tensor made({2, edges}, DType::i64);
  const std::uint64_t key = key_of(seed, Draw::rmat);
  const Quarters quarters(shares);
  auto* const source = made.data<std::int64_t>();
  auto* const target = source + edges;
  parallel_for(edges, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t edge = begin; edge < end; ++edge) {
      Random random(key, static_cast<std::uint64_t>(edge));
      std::int64_t from = 0, to = 0;
      std::uint64_t bits = 0;
      for (int step = 0; step < scale; ++step) {
        bits = step % 2 == 0 ? random.bits() : bits >> 32;
        const unsigned quarter = quarters.of(bits & 0xffffffffu);
        from = from * 2 + (quarter >> 1);
        to = to * 2 + (quarter & 1);
      }
      source[edge] = from;
      target[edge] = to;
    }
  });
  return made;
}

Tensor grid_edges(std::span<const std::int64_t> extents, bool wraps) {
  PUMICE_EXPECTS(!extents.empty() && extents.size() <= 8, "grid_edges: ", extents.size(),
                 " extents: give 1 to 8");
  std::int64_t nodes = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    PUMICE_EXPECTS(extents[axis] >= 0, "grid_edges: extents[", axis, "] = ", extents[axis],
                   ": give 0 or more");
    PUMICE_EXPECTS(extents[axis] == 0 || nodes <= kMostNodes / extents[axis],
                   "grid_edges: these extents make more than 2147483647 nodes: give smaller ones");
    nodes *= extents[axis];
  }
  std::vector<std::int64_t> stride(extents.size(), 1);
  for (std::size_t axis = extents.size() - 1; axis > 0; --axis)
    stride[axis - 1] = stride[axis] * extents[axis];

  /// Calls body(node) for the neighbours of one.
  const auto each_neighbour = [&](std::int64_t node, auto&& body) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const std::int64_t extent = extents[axis], at = node / stride[axis] % extent;
      const bool is_ring = wraps && extent > 2;
      if (at > 0) body(node - stride[axis]);
      if (at == 0 && is_ring) body(node + (extent - 1) * stride[axis]);
      if (at < extent - 1) body(node + stride[axis]);
      if (at == extent - 1 && is_ring) body(node - (extent - 1) * stride[axis]);
    }
  };
  std::vector<std::int64_t> next(static_cast<std::size_t>((nodes + kChunk - 1) / kChunk) + 1);
  parallel_for(nodes, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t node = begin; node < end; ++node)
      each_neighbour(node, [&](std::int64_t) { ++count; });
    next[static_cast<std::size_t>(begin / kChunk)] = count;
  });
  std::exclusive_scan(next.begin(), next.end(), next.begin(), std::int64_t{0});
  const std::int64_t edges = next.back();
  Tensor made({2, edges}, DType::i64);
  auto* const source = made.data<std::int64_t>();
  auto* const target = source + edges;
  parallel_for(nodes, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t edge = next[static_cast<std::size_t>(begin / kChunk)];
    for (std::int64_t node = begin; node < end; ++node) {
      const std::int64_t first = edge;
      each_neighbour(node, [&](std::int64_t other) {
        source[edge] = other;
        target[edge++] = node;
      });
      std::sort(source + first, source + edge);
    }
  });
  return made;
}

}   // namespace pumice
