// Layers of graphs in float64, by loops over edges and dense matrices.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/tensor.hpp>
#include <pumice/nn/graph_convolution.hpp>
#include <pumice/nn/relational_convolution.hpp>
#include <pumice/nn/sage_convolution.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"

namespace pumice::nn::test {

using pumice::test::i64;
using pumice::test::PatternCase;
using pumice::test::random_tensor;

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  explicit Matrix(const Tensor& tensor)
      : Matrix(tensor.extent(0), tensor.elements() / std::max<std::int64_t>(tensor.extent(0), 1)) {
    const Tensor wide = tensor.to(DType::f64);
    values.assign(wide.span<double>().begin(), wide.span<double>().end());
  }
  double& at(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  double at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
};

inline Matrix times(const Matrix& a, const Matrix& b) {
  Matrix made(a.rows, b.columns);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < b.columns; ++c)
      for (std::int64_t k = 0; k < a.columns; ++k)
        made.at(r, c) += a.at(r, k) * b.at(k, c);
  return made;
}

inline Matrix turned(const Matrix& a) {
  Matrix made(a.columns, a.rows);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < a.columns; ++c)
      made.at(c, r) = a.at(r, c);
  return made;
}

inline void add_to(Matrix& sum, const Matrix& more) {
  for (std::size_t i = 0; i < sum.values.size(); ++i)
    sum.values[i] += more.values[i];
}

/// A layer's parameters by name.
using Weights = std::map<std::string, Tensor>;

inline void add_bias(Matrix& sum, const Weights& weights, const std::string& name) {
  const auto found = weights.find(name);
  if (found == weights.end()) return;
  const Tensor bias = found->second.to(DType::f64);
  for (std::int64_t r = 0; r < sum.rows; ++r)
    for (std::int64_t c = 0; c < sum.columns; ++c)
      sum.at(r, c) += bias.data<double>()[c];
}

/// Square graphs, with types for their edges: of five one has no edge, and all edges of one case
/// are of one type.
struct GraphCase {
  PatternCase edges;
  std::vector<std::int64_t> type;

  std::int64_t nodes() const { return edges.rows; }
  Tensor edge_index() const {
    std::vector<std::int64_t> both = edges.column;
    both.insert(both.end(), edges.row.begin(), edges.row.end());
    return Tensor::from(std::span<const std::int64_t>(both), {2, edges.entries()});
  }
};

inline constexpr std::int64_t kRelations = 5;

inline std::vector<GraphCase> graph_cases() {
  PatternCase heavy{"one node has all", 33, 33, {}, {}};
  for (std::int64_t e = 0; e < 400; ++e) {
    heavy.row.push_back(17);
    heavy.column.push_back(e * 7 % 33);
  }
  std::vector<GraphCase> cases;
  for (PatternCase& edges :
       std::vector<PatternCase>{{"nothing at all", 0, 0, {}, {}},
                                {"no edge", 3, 3, {}, {}},
                                {"a loop", 1, 1, {0}, {0}},
                                {"an edge that stands three times", 2, 2, {1, 1, 1}, {0, 0, 0}},
                                {"loops", 3, 3, {0, 1, 2, 2}, {0, 1, 2, 2}},
                                {"descending", 4, 4, {3, 3, 2, 0}, {3, 0, 1, 2}},
                                heavy,
                                pumice::test::random_pattern(31, 31, 200, 1),
                                pumice::test::random_pattern(257, 257, 1500, 2)}) {
    GraphCase one{edges, {}};
    for (std::int64_t e = 0; e < edges.entries(); ++e)
      one.type.push_back(edges.name == "one node has all" ? 1 : e * 7 % 4);
    cases.push_back(std::move(one));
  }
  return cases;
}

/// Of the edges that `take` says, the reduced rows of x.
template <class Take>
Matrix reduced_rows(const GraphCase& graph, const Matrix& x, EntryReduction reduction,
                    Take&& take) {
  Matrix made(graph.nodes(), x.columns);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(graph.nodes()));
  for (std::size_t e = 0; e < graph.type.size(); ++e) {
    if (!take(e)) continue;
    const std::int64_t to = graph.edges.row[e];
    const bool first = seen[static_cast<std::size_t>(to)]++ == 0;
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const double value = x.at(graph.edges.column[e], c);
      double& sum = made.at(to, c);
      if (reduction == EntryReduction::max) {
        sum = first ? value : std::max(sum, value);
      } else {
        sum += value;
      }
    }
  }
  for (std::int64_t r = 0; reduction == EntryReduction::mean && r < made.rows; ++r)
    for (std::int64_t c = 0; c < made.columns; ++c)
      made.at(r, c) /=
          static_cast<double>(std::max<std::int64_t>(seen[static_cast<std::size_t>(r)], 1));
  return made;
}

/// Dense: D^-1/2 (A + I) D^-1/2 X Wᵀ + b, where a node with a loop keeps the weight of its last.
inline Matrix gcn_reference(const GraphCase& graph, const Tensor& edge_weight,
                            const NormalizedGraphOptions& options, const Matrix& x,
                            const Weights& weights) {
  const std::int64_t n = graph.nodes();
  Matrix a(n, n);
  std::vector<double> loop(static_cast<std::size_t>(n),
                           options.improved && edge_weight.defined() ? 2.0 : 1.0);
  for (std::size_t e = 0; e < graph.type.size(); ++e) {
    const std::int64_t to = graph.edges.row[e], from = graph.edges.column[e];
    const double w = edge_weight.defined() ? edge_weight.data<double>()[e] : 1;
    if (options.add_self_loops && to == from) {
      loop[static_cast<std::size_t>(to)] = w;
    } else {
      a.at(to, from) += w;
    }
  }
  for (std::int64_t i = 0; options.add_self_loops && i < n; ++i)
    a.at(i, i) = loop[static_cast<std::size_t>(i)];
  std::vector<double> root(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < n; ++r) {
    double degree = 0;
    for (std::int64_t c = 0; c < n; ++c)
      degree += a.at(r, c);
    root[static_cast<std::size_t>(r)] = degree == 0 ? 0 : 1 / std::sqrt(degree);
  }
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t c = 0; c < n; ++c)
      a.at(r, c) *= root[static_cast<std::size_t>(r)] * root[static_cast<std::size_t>(c)];
  Matrix made = times(a, times(x, turned(Matrix(weights.at("lin.weight")))));
  add_bias(made, weights, "bias");
  return made;
}

inline Matrix sage_reference(const GraphCase& graph, const SageConvolutionSpec& spec,
                             const Matrix& x, const Weights& weights) {
  Matrix sources = x;
  if (spec.project) {
    sources = times(x, turned(Matrix(weights.at("lin.weight"))));
    add_bias(sources, weights, "lin.bias");
    for (double& value : sources.values)
      value = std::max(value, 0.0);
  }
  Matrix made =
      times(reduced_rows(graph, sources, spec.reduction, [](std::size_t) { return true; }),
            turned(Matrix(weights.at("lin_l.weight"))));
  add_bias(made, weights, "lin_l.bias");
  if (spec.root_weight) add_to(made, times(x, turned(Matrix(weights.at("lin_r.weight")))));
  return made;
}

/// The matrix of relation r, of bases and blocks by their definitions.
inline Matrix matrix_of(const RelationalConvolutionSpec& spec, const Weights& weights,
                        std::int64_t r) {
  const std::int64_t in = spec.in_channels, out = spec.out_channels;
  const Tensor stored = weights.at("weight").to(DType::f64);
  const double* w = stored.data<double>();
  Matrix made(in, out);
  for (std::int64_t i = 0; i < in; ++i) {
    for (std::int64_t o = 0; o < out; ++o) {
      if (spec.bases) {
        const Matrix comp(weights.at("comp"));
        for (std::int64_t b = 0; b < *spec.bases; ++b)
          made.at(i, o) += comp.at(r, b) * w[(b * in + i) * out + o];
      } else if (spec.blocks) {
        const std::int64_t high = in / *spec.blocks, wide = out / *spec.blocks;
        if (i / high == o / wide) {
          made.at(i, o) = w[((r * *spec.blocks + i / high) * high + i % high) * wide + o % wide];
        }
      } else {
        made.at(i, o) = w[(r * in + i) * out + o];
      }
    }
  }
  return made;
}

/// Of nodes without features, x is the identity. (Means and sums of rows of the identity times a
/// matrix are means and sums of its rows; maxima are not, and are taken of its rows.)
inline Matrix rgcn_reference(const GraphCase& graph, const RelationalConvolutionSpec& spec,
                             const Matrix* x, const Weights& weights) {
  Matrix made(graph.nodes(), spec.out_channels);
  for (std::int64_t r = 0; r < spec.relations; ++r) {
    const auto of_relation = [&](std::size_t e) { return graph.type[e] == r; };
    const Matrix w = matrix_of(spec, weights, r);
    add_to(made, x == nullptr ? reduced_rows(graph, w, spec.reduction, of_relation)
                              : times(reduced_rows(graph, *x, spec.reduction, of_relation), w));
  }
  if (spec.root_weight) {
    const Matrix root(weights.at("root"));
    add_to(made, x == nullptr ? root : times(*x, root));
  }
  add_bias(made, weights, "bias");
  return made;
}

/// Fills all parameters with random numbers, and returns copies.
inline Weights draw(ParameterTree& layer, DType type, std::uint64_t seed = 11) {
  Weights weights;
  layer.to(type);
  for (const NamedParameter& named : layer.parameters()) {
    Parameter& parameter = *named.parameter;
    parameter.set(random_tensor(std::as_const(parameter).value().shape(),
                                std::as_const(parameter).value().dtype(), ++seed));
    weights[named.name] = std::as_const(parameter).value().clone();
  }
  return weights;
}

/// The largest difference over the largest number, or the largest number where that is below 1.
inline double worst_difference(const Tensor& made, const Matrix& expected) {
  const Matrix values(made);
  double worst = made.extent(0) == expected.rows && made.extent(1) == expected.columns ? 0 : 1e30;
  double largest = 1;
  for (std::size_t i = 0; worst < 1e30 && i < values.values.size(); ++i) {
    const double difference = std::abs(values.values[i] - expected.values[i]);
    worst = std::isnan(difference) ? 1e30 : std::max(worst, difference);
    largest = std::max(largest, std::abs(expected.values[i]));
  }
  return worst / largest;
}

}   // namespace pumice::nn::test
