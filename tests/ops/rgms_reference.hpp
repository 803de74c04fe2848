// Relational products and their gradients in float64, by loops over edges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/ops/rgms.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/spmm_reference.hpp"

namespace pumice::test {

struct TypedCase {
  PatternCase edges;
  std::int64_t types = 0;
  std::vector<std::int64_t> type;

  TypedGraph graph(StreamView stream = {}) const {
    return TypedGraph(edges.rows, edges.columns, types, i64(edges.row), i64(edges.column),
                      i64(type), stream);
  }
};

/// Types in no order; of five one has no edge, and of one all are of a single type.
inline std::vector<TypedCase> typed_cases() {
  std::vector<TypedCase> cases;
  for (PatternCase& edges : pattern_cases()) {
    if (edges.entries() > 1000) continue;   // the loops take long
    for (const std::int64_t types : {1, 5}) {
      TypedCase one{edges, types, {}};
      for (std::int64_t e = 0; e < edges.entries(); ++e)
        one.type.push_back(types == 1 ? 0 : e * 7 % 4);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

struct RgmsProblem {
  static constexpr std::int64_t kIn = 8, kOut = 16;

  RgmsProblem(const TypedCase& of, DType type, bool weighted)
      : one(of),
        x(random_tensor({of.edges.columns, kIn}, type, 1)),
        weight(random_tensor({of.types, kIn, kOut}, type, 2)),
        grad(random_tensor({of.edges.rows, kOut}, type, 3)),
        values(weighted ? random_tensor({of.edges.entries()}, type, 4) : Tensor()) {
    const Tensor wide = x.to(DType::f64), w = weight.to(DType::f64), g = grad.to(DType::f64);
    const Tensor v = weighted ? values.to(DType::f64) : Tensor();
    output = Tensor::zeros({of.edges.rows, kOut}, DType::f64);
    of_x = Tensor::zeros({of.edges.columns, kIn}, DType::f64);
    of_weight = Tensor::zeros({of.types, kIn, kOut}, DType::f64);
    of_values = Tensor::zeros({of.edges.entries(), 1}, DType::f64);
    for (std::int64_t e = 0; e < of.edges.entries(); ++e) {
      const auto at = static_cast<std::size_t>(e);
      const std::int64_t row = of.edges.row[at], column = of.edges.column[at],
                         type_of = of.type[at];
      const double value = weighted ? v.data<double>()[e] : 1;
      for (std::int64_t i = 0; i < kIn; ++i) {
        for (std::int64_t o = 0; o < kOut; ++o) {
          const std::int64_t in_weight = (type_of * kIn + i) * kOut + o;
          const double a = wide.data<double>()[column * kIn + i], b = w.data<double>()[in_weight],
                       c = g.data<double>()[row * kOut + o];
          output.data<double>()[row * kOut + o] += value * a * b;
          of_x.data<double>()[column * kIn + i] += value * b * c;
          of_weight.data<double>()[in_weight] += value * a * c;
          of_values.data<double>()[e] += a * b * c;
        }
      }
    }
  }

  const TypedCase& one;
  Tensor x, weight, grad, values;
  Tensor output, of_x, of_weight, of_values;   // f64
};

inline Tensor column_sums(const Tensor& rows) {
  Tensor sums = Tensor::zeros({rows.extent(1)}, DType::f64);
  for (std::int64_t i = 0; i < rows.view().elements(); ++i)
    sums.data<double>()[i % rows.extent(1)] += rows.data<double>()[i];
  return sums;
}

/// left · right of f64 matrices, each transposed first where that is asked for.
inline Tensor dense_product(const Tensor& left, bool turn_left, const Tensor& right,
                            bool turn_right) {
  const std::int64_t rows = left.extent(turn_left ? 1 : 0), inner = left.extent(turn_left ? 0 : 1),
                     columns = right.extent(turn_right ? 0 : 1);
  Tensor made = Tensor::zeros({rows, columns}, DType::f64);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t k = 0; k < inner; ++k) {
        made.data<double>()[r * columns + c] +=
            left.data<double>()[turn_left ? k * rows + r : r * inner + k] *
            right.data<double>()[turn_right ? c * inner + k : k * columns + c];
      }
    }
  }
  return made;
}

inline Tensor sum_of(const Tensor& left, const Tensor& right) {
  Tensor sum = left.clone();
  for (std::int64_t i = 0; i < left.view().elements(); ++i)
    sum.data<double>()[i] += right.data<double>()[i];
  return sum;
}

/// Forward and backward with what targets bring themselves: a root and a bias, of which one may be
/// missing. The targets are the sources where `shared`.
inline void check_root(const RgmsProblem& problem, TypedGraph& graph, StreamView stream,
                       const Kind& kind, bool shared, bool has_root, bool has_bias) {
  const PatternCase& edges = problem.one.edges;
  SCOPED_TRACE(edges.name + ", " + std::string(name_of(kind.type)) + (shared ? ", shared" : "") +
               (has_root ? ", root" : "") + (has_bias ? ", bias" : ""));
  const std::int64_t channels = shared ? RgmsProblem::kIn : 12;
  const DType wide = kind.type == DType::f64 ? DType::f64 : DType::f32;
  const Tensor targets = shared ? problem.x : random_tensor({edges.rows, channels}, kind.type, 5);
  const Tensor root = random_tensor({channels, RgmsProblem::kOut}, kind.type, 6);
  const Tensor bias = random_tensor({RgmsProblem::kOut}, wide, 7);
  const Tensor t = targets.to(DType::f64), r = root.to(DType::f64), g = problem.grad.to(DType::f64);
  const Tensor none = Tensor::zeros(problem.output.shape(), DType::f64);
  const Tensor expected =
      with_added(sum_of(problem.output, has_root ? dense_product(t, false, r, false) : none),
                 has_bias ? bias : Tensor(), {});
  const Tensor of_targets =
      has_root ? dense_product(g, false, r, true) : Tensor::zeros(targets.shape(), DType::f64);

  const Tensor x = copy_to(stream, problem.x), weight = copy_to(stream, problem.weight),
               grad = copy_to(stream, problem.grad), targets_there = copy_to(stream, targets),
               root_there = copy_to(stream, root), bias_there = copy_to(stream, bias);
  RootTerm term;
  if (has_root) term.root = root_there;
  if (has_root && !shared) term.targets = targets_there;
  if (has_bias) term.bias = bias_there;
  const auto host = [&](const Tensor& tensor) { return copy_to_host(tensor, stream); };
  const RgmsResult made = rgms(graph.view(), {}, x, weight, EntryReduction::sum, {}, {}, term);
  expect_near(host(made.output), expected, 3 * kind.tolerance, "output");
  const TypedLinearOptions fixed{
      .numerics = {.deterministic = stream.device.kind == DeviceKind::cuda}};
  const RgmsGradients of = rgms_gradients(graph.view_both_ways(), {}, x, weight, made.gathered, {},
                                          grad, EntryReduction::sum, {}, fixed, {}, term);
  expect_near(host(of.features), shared ? sum_of(problem.of_x, of_targets) : problem.of_x,
              4 * kind.tolerance, "gradient of the features");
  expect_near(host(of.weight), problem.of_weight, 4 * kind.tolerance, "gradient of the weight");
  ASSERT_EQ(of.targets.defined(), has_root && !shared);
  if (of.targets.defined())
    expect_near(host(of.targets), of_targets, 2 * kind.tolerance, "gradient of the targets");
  ASSERT_EQ(of.root.defined(), has_root);
  if (has_root) {
    expect_near(host(of.root), dense_product(t, true, g, false), 4 * kind.tolerance,
                "gradient of the root");
  }
  ASSERT_EQ(of.bias.defined(), has_bias);
  if (has_bias) expect_near(host(of.bias), column_sums(g), 4e-6, "gradient of the bias");
}

/// Every way in which there may be one.
inline void check_roots(const RgmsProblem& problem, TypedGraph& graph, StreamView stream,
                        const Kind& kind) {
  for (const bool shared : {false, true}) {
    if (shared && problem.one.edges.rows != problem.one.edges.columns) continue;
    check_root(problem, graph, stream, kind, shared, true, true);
    check_root(problem, graph, stream, kind, shared, true, false);
  }
  check_root(problem, graph, stream, kind, false, false, true);
}

/// Forward and backward on `graph`, which lies where `stream` runs.
inline void check(const RgmsProblem& problem, TypedGraph& graph, StreamView stream,
                  const Kind& kind) {
  SCOPED_TRACE(problem.one.edges.name + ", " + std::to_string(problem.one.types) + " types, " +
               std::string(name_of(kind.type)) + (problem.values.defined() ? ", weighted" : ""));
  const Tensor x = copy_to(stream, problem.x), weight = copy_to(stream, problem.weight),
               grad = copy_to(stream, problem.grad);
  const Tensor values = problem.values.defined() ? copy_to(stream, problem.values) : Tensor();
  const ConstTensorView of_edges = values.defined() ? values.view() : ConstTensorView();
  const RgmsResult made = rgms(graph.view(), of_edges, x, weight);
  expect_near(copy_to_host(made.output, stream), problem.output, 2 * kind.tolerance, "output");
  const TypedLinearOptions fixed{
      .numerics = {.deterministic = stream.device.kind == DeviceKind::cuda}};
  const RgmsGradients gradients =
      rgms_gradients(graph.view_both_ways(), of_edges, x, weight, made.gathered, {}, grad,
                     EntryReduction::sum, {}, fixed);
  expect_near(copy_to_host(gradients.features, stream), problem.of_x, 4 * kind.tolerance,
              "gradient of the features");
  expect_near(copy_to_host(gradients.weight, stream), problem.of_weight, 4 * kind.tolerance,
              "gradient of the weight");
  EXPECT_EQ(gradients.values.defined(), values.defined());
  if (values.defined()) {
    expect_near(copy_to_host(gradients.values, stream), problem.of_values, 4 * kind.tolerance,
                "gradient of the values");
  }
}

}   // namespace pumice::test
