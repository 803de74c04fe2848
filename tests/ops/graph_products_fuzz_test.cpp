// Products of sparse matrices, attention and relational products with all their gradients beside
// loops over a list of entries in float64, on random patterns: PUMICE_RANDOM_PROBLEMS and
// PUMICE_RANDOM_SEED say how many, and where they begin. part_products_test.cpp goes over formats.
// Covers spmm, edge_softmax, edge_scores and rgms.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/edge_softmax.hpp>
#include <pumice/ops/rgms.hpp>
#include <pumice/ops/spmm.hpp>

#include "graphs/drawn_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/edge_scores_reference.hpp"
#include "ops/edge_softmax_reference.hpp"
#include "ops/rgms_reference.hpp"
#include "ops/spmm_reference.hpp"
#include "support/random_problems.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 800'000;
constexpr std::uint64_t kProblems = 300;

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView();
}

/// What is wrong with one problem, by name; nothing more is looked at then.
class Complaint {
 public:
  explicit Complaint(std::uint64_t seed) : name_("seed " + std::to_string(seed) + ", ") {}

  template <class Expected>
  void expect(const std::string& what, const Tensor& found, const Expected& expected,
              double tolerance) {
    if (!said_.empty()) return;
    const std::string said = difference(found, expected, tolerance);
    if (!said.empty()) said_ = name_ + what + ": " + said;
  }
  void expect(const std::string& what, bool is_so) {
    if (said_.empty() && !is_so) said_ = name_ + what;
  }
  const std::string& said() const { return said_; }

 private:
  std::string name_, said_;
};

/// What all problems of a seed share.
struct Drawn {
  PatternCase pattern;
  Kind kind;
  std::int64_t heads, channels;
  bool is_weighted;
  double slope;
  std::uint64_t seed;

  Drawn(Random random, std::uint64_t of_seed)
      : pattern(drawn_pattern(random, of_seed)),
        kind(kKinds[random.integer(0, 3)]),
        heads(random.integer(1, 3)),
        channels(heads * random.integer(1, 12)),
        is_weighted(random.integer(0, 3) > 0),
        slope(0.25 * static_cast<double>(random.integer(0, 4))),
        seed(of_seed) {}
};

/// `spmm` by every reduction, its gradients, and `sddmm`.
void check_products(const Drawn& one, const Csr& forward, const Csr& back, Complaint& complaint) {
  const PatternCase& of = one.pattern;
  Tensor x = random_tensor({of.columns, one.channels}, one.kind.type, one.seed);
  Tensor g = random_tensor({of.rows, one.channels}, one.kind.type, one.seed + 1);
  spoil_unread(x, of.column);
  spoil_unread(g, of.row);
  const Tensor values = one.is_weighted
                            ? random_tensor({of.entries(), one.heads}, one.kind.type, one.seed + 2)
                            : Tensor();
  const Tensor wide = one.is_weighted ? values.to(DType::f64) : Tensor();
  for (const EntryReduction reduction : kReductions) {
    const std::string name = "reduction " + std::to_string(static_cast<int>(reduction)) + ", ";
    const Reference expected(of, wide, x.to(DType::f64), g.to(DType::f64), one.heads, reduction);
    Tensor output = dirty({of.rows, one.channels}, one.kind.type);
    Tensor source = dirty({of.rows, one.channels}, DType::i64);
    const SpmmResult made = spmm(forward.view(), view_of(values), x, reduction,
                                 {.output = Place(output), .source = Place(source)});
    complaint.expect(name + "spmm", made.output, expected.output, one.kind.tolerance);
    if (picks(reduction))
      complaint.expect(name + "another entry was picked", same_bits(made.source, expected.source));
    const ConstTensorView picked = view_of(made.source);
    Tensor of_features = dirty({of.columns, one.channels}, one.kind.type);
    complaint.expect(name + "gradient of the features",
                     spmm_features_gradient(forward.view(), back.view(), view_of(values), g, picked,
                                            reduction, Place(of_features)),
                     expected.features_gradient, 4 * one.kind.tolerance);
    if (!one.is_weighted) continue;
    Tensor of_values = dirty({of.entries(), one.heads}, one.kind.type);
    complaint.expect(
        name + "gradient of the values",
        spmm_values_gradient(forward.view(), x, g, one.heads, picked, reduction, Place(of_values)),
        expected.values_gradient, 4 * one.kind.tolerance);
  }
  Tensor dots_there = dirty({of.entries(), one.heads}, one.kind.type);
  complaint.expect("sddmm", sddmm(forward.view(), g, x, one.heads, Place(dots_there)),
                   dots(of, g.to(DType::f64), x.to(DType::f64), one.heads), one.kind.tolerance);
}

void check_softmax(const Drawn& one, const Csr& forward, const Csr& back, Complaint& complaint) {
  const ScoreKind& kind = kScoreKinds[one.seed % std::size(kScoreKinds)];
  const AttentionProblem problem(one.pattern, one.kind.type, one.heads, kind.target, kind.source,
                                 kind.entry, one.slope);
  const EdgeScores scores{view_of(problem.target), view_of(problem.source), view_of(problem.entry),
                          problem.negative_slope};
  const Tensor shares = edge_softmax(forward.view(), scores);
  complaint.expect("edge_softmax", shares, problem.share, one.kind.tolerance);
  const EdgeScoreGradients made =
      edge_softmax_gradient(forward.view(), back.view(), scores, shares, problem.grad);
  const double tolerance = 8 * one.kind.tolerance;
  if (kind.target)
    complaint.expect("softmax, gradient of targets", made.target, problem.of_target, tolerance);
  if (kind.source)
    complaint.expect("softmax, gradient of sources", made.source, problem.of_source, tolerance);
  if (kind.entry)
    complaint.expect("softmax, gradient of entries", made.entry, problem.of_entry, tolerance);
}

void check_scores(const Drawn& one, const Csr& forward, const Csr& back, Complaint& complaint) {
  const ScoreProblem problem(one.pattern, one.kind.type, one.channels, one.heads, one.seed % 2 == 0,
                             one.slope);
  const AdditiveScores scores{problem.target, problem.source, problem.attention,
                              view_of(problem.entry), problem.negative_slope};
  const double tolerance = one.kind.tolerance;
  complaint.expect("edge_scores", edge_scores(forward.view(), scores), problem.score, tolerance);
  const AdditiveScoreGradients made =
      edge_scores_gradient(forward.view(), back.view(), scores, problem.grad);
  complaint.expect("scores, gradient of targets", made.target, problem.of_target, 4 * tolerance);
  complaint.expect("scores, gradient of sources", made.source, problem.of_source, 4 * tolerance);
  complaint.expect("scores, gradient of attention", made.attention, problem.of_attention,
                   8 * tolerance);
  if (problem.entry.defined())
    complaint.expect("scores, gradient of entries", made.entry, problem.of_entry, tolerance);
}

/// How many entries the longest row or column has.
std::int64_t longest_of(const PatternCase& of) {
  std::map<std::int64_t, std::int64_t> rows, columns;
  std::int64_t longest = 0;
  for (std::size_t e = 0; e < of.row.size(); ++e)
    longest = std::max({longest, ++rows[of.row[e]], ++columns[of.column[e]]});
  return longest;
}

/// Of five types one or more may have no edge. In half precision sums of a segment's edges are
/// stored, and so rounded, before they are multiplied: the more edges, the more that is.
void check_relations(const Drawn& one, Complaint& complaint) {
  Random random(one.seed, 3);
  TypedCase typed{one.pattern, random.integer(1, 5), {}};
  for (std::int64_t e = 0; e < one.pattern.entries(); ++e)
    typed.type.push_back(random.integer(0, typed.types - 1) / 2 * 2);
  const RgmsProblem problem(typed, one.kind.type, one.is_weighted);
  TypedGraph graph = typed.graph();
  const bool is_half = size_of(one.kind.type) == 2;
  const auto edges = static_cast<double>(is_half ? longest_of(one.pattern) : 0);
  const double tolerance = one.kind.tolerance * std::max(4.0, edges);
  const RgmsResult made = rgms(graph.view(), view_of(problem.values), problem.x, problem.weight);
  complaint.expect("rgms", made.output, problem.output, tolerance);
  const RgmsGradients gradients =
      rgms_gradients(graph.view_both_ways(), view_of(problem.values), problem.x, problem.weight,
                     made.gathered, {}, problem.grad);
  complaint.expect("rgms, gradient of the features", gradients.features, problem.of_x, tolerance);
  complaint.expect("rgms, gradient of the weight", gradients.weight, problem.of_weight, tolerance);
  if (one.is_weighted)
    complaint.expect("rgms, gradient of the values", gradients.values, problem.of_values,
                     tolerance);
}

/// Entries of the transpose are those of the pattern, under their numbers.
void check_transpose(const PatternCase& of, const Csr& back, Complaint& complaint) {
  const CsrView view = back.view();
  std::vector<std::int64_t> seen(of.row.size());
  bool is_so = view.rows == of.columns && view.columns == of.rows;
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t place = view.begin_of(row); place < view.end_of(row); ++place) {
      const auto number = static_cast<std::size_t>(view.number_of(place));
      is_so = is_so && number < seen.size() && of.column[number] == row &&
              of.row[number] == view.column[static_cast<std::size_t>(place)];
      if (number < seen.size()) ++seen[number];
    }
  }
  complaint.expect(
      "the transpose has other entries",
      is_so && std::ranges::all_of(seen, [](std::int64_t times) { return times == 1; }));
}

std::string complaint_about(std::uint64_t seed) {
  const Drawn one(Random(seed), seed);
  const Csr forward = one.pattern.csr();
  const Csr back = transposed(forward.view());
  Complaint complaint(seed);
  check_transpose(one.pattern, back, complaint);
  check_products(one, forward, back, complaint);
  check_softmax(one, forward, back, complaint);
  check_scores(one, forward, back, complaint);
  check_relations(one, complaint);
  return complaint.said();
}

TEST(GraphProductsFuzz, agree_with_the_reference) {
  check_seeds(
      seeds_from_environment(kSeed, kProblems), [] { return 0; },
      [](std::uint64_t seed, int) { return complaint_about(seed); });
}

}   // namespace
}   // namespace pumice::test
