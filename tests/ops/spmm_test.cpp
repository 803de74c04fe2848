// Products of sparse matrices beside loops over a list of entries in float64.
// Covers spmm, gather_reduce, edge_map and picked_entries.
#include <pumice/ops/spmm.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>
#include <pumice/ops/edge_scores.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/spmm_reference.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

void check(const PatternCase& one, const Kind& kind, std::int64_t channels, std::int64_t heads,
           bool weighted, EntryReduction reduction) {
  SCOPED_TRACE(one.name + ", " + std::string(name_of(kind.type)) + ", " + std::to_string(channels) +
               " channels, " + std::to_string(heads) + " heads" + (weighted ? "" : ", no values") +
               ", reduction " + std::to_string(static_cast<int>(reduction)));
  const Tensor x = random_tensor({one.columns, channels}, kind.type, 1);
  const Tensor g = random_tensor({one.rows, channels}, kind.type, 2);
  const Tensor values = weighted ? random_tensor({one.entries(), heads}, kind.type, 3) : Tensor();
  const Reference expected(one, weighted ? values.to(DType::f64) : Tensor(), x.to(DType::f64),
                           g.to(DType::f64), heads, reduction);
  const Csr csr = one.csr();
  const Csr back = transposed(csr.view());
  const ConstTensorView weights = weighted ? values.view() : ConstTensorView();
  const SpmmResult got = spmm(csr.view(), weights, x, reduction);
  expect_near(got.output, expected.output, kind.tolerance, "output");
  if (picks(reduction)) {
    EXPECT_TRUE(same_bits(got.source, expected.source));
  }
  const ConstTensorView source = picks(reduction) ? got.source.view() : ConstTensorView();
  expect_near(spmm_features_gradient(csr.view(), back.view(), weights, g, source, reduction),
              expected.features_gradient, kind.tolerance, "gradient of the features");
  expect_near(spmm_values_gradient(csr.view(), x, g, heads, source, reduction),
              expected.values_gradient, kind.tolerance, "gradient of the values");
}

TEST(Spmm, IsWhatItsDefinitionSays) {
  for (const PatternCase& one : pattern_cases()) {
    for (const Kind& kind : kKinds) {
      for (const EntryReduction reduction : kReductions) {
        check(one, kind, 6, 1, true, reduction);
        check(one, kind, 6, 3, true, reduction);
        check(one, kind, 5, 1, false, reduction);
      }
    }
  }
}

TEST(Spmm, TakesAnyNumberOfChannels) {
  const PatternCase one = random_pattern(40, 30, 300, 5);
  for (const std::int64_t channels : {0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 129, 260}) {
    for (const EntryReduction reduction : kReductions) {
      check(one, kKinds[1], channels, 1, true, reduction);
      check(one, kKinds[3], channels, 1, false, reduction);
    }
  }
}

TEST(Spmm, TakesRowsOfManyEntriesAndOfFewInEveryType) {
  // With four entries a row and more, gradients of max and min read numbers of 32 bits.
  for (const PatternCase& one :
       {random_pattern(40, 30, 300, 7), random_pattern(300, 200, 250, 8)}) {
    for (const Kind& kind : kKinds) {
      for (const EntryReduction reduction : kReductions) {
        check(one, kind, 33, 1, true, reduction);
        check(one, kind, 66, 2, true, reduction);
      }
    }
  }
}

/// A sum or mean and its gradient, each added to rows beside it or to those that it takes the place
/// of, and to a shift.
void check_added(const PatternCase& one, const Kind& kind, std::int64_t channels, bool weighted,
                 EntryReduction reduction) {
  SCOPED_TRACE(one.name + ", " + std::string(name_of(kind.type)) + ", " + std::to_string(channels) +
               " channels, reduction " + std::to_string(static_cast<int>(reduction)));
  const DType wide = kind.type == DType::f64 ? DType::f64 : DType::f32;
  const Tensor x = random_tensor({one.columns, channels}, kind.type, 1);
  const Tensor g = random_tensor({one.rows, channels}, kind.type, 2);
  const Tensor values = weighted ? random_tensor({one.entries(), 1}, kind.type, 3) : Tensor();
  const Tensor shift = random_tensor({channels}, wide, 4);
  const Reference expected(one, weighted ? values.to(DType::f64) : Tensor(), x.to(DType::f64),
                           g.to(DType::f64), 1, reduction);
  const Csr csr = one.csr();
  const Csr back = transposed(csr.view());
  const ConstTensorView weights = weighted ? values.view() : ConstTensorView();
  const auto check_one = [&](const char* what, const Tensor& sums, const auto& product) {
    const Tensor residual = random_tensor(sums.shape(), kind.type, 5);
    expect_near(product(RowAddends{.shift = shift}, Place()), with_added(sums, shift, {}),
                kind.tolerance, what);
    expect_near(product(RowAddends{.shift = shift, .residual = residual}, Place()),
                with_added(sums, shift, residual), 2 * kind.tolerance, what);
    const Tensor place = residual.clone();
    const Tensor made = product(RowAddends{.residual = place}, Place(place));
    EXPECT_EQ(made.raw(), place.raw());
    expect_near(made, with_added(sums, {}, residual), 2 * kind.tolerance, what);
  };
  check_one("output", expected.output, [&](const RowAddends& added, const Place& place) {
    return spmm(csr.view(), weights, x, reduction, {.output = place}, nullptr, added).output;
  });
  check_one("gradient", expected.features_gradient,
            [&](const RowAddends& added, const Place& place) {
              return spmm_features_gradient(csr.view(), back.view(), weights, g, {}, reduction,
                                            place, nullptr, added);
            });
}

TEST(Spmm, AddsSumsAndMeansToWhatIsThere) {
  for (const EntryReduction reduction : {EntryReduction::sum, EntryReduction::mean}) {
    for (const PatternCase& one : pattern_cases()) {
      if (one.entries() > 1000) continue;
      for (const Kind& kind : kKinds)
        check_added(one, kind, 6, true, reduction);
    }
    const PatternCase one = random_pattern(40, 30, 300, 5);
    for (const std::int64_t channels : {0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 129, 260}) {
      for (const Kind& kind : kKinds)
        check_added(one, kind, channels, false, reduction);
    }
  }
}

TEST(Spmm, AddsByHeadsToo) {
  const PatternCase one = random_pattern(40, 30, 300, 5);
  const Csr csr = one.csr();
  const Tensor x = random_tensor({30, 33}, DType::f32, 1);
  const Tensor values = random_tensor({300, 3}, DType::f32, 2);
  const Tensor shift = random_tensor({33}, DType::f32, 3);
  const Tensor residual = random_tensor({40, 33}, DType::f32, 4);
  const Tensor sums = spmm(csr.view(), values, x).output;
  expect_near(spmm(csr.view(), values, x, EntryReduction::sum, {}, nullptr,
                   {.shift = shift, .residual = residual})
                  .output,
              with_added(sums, shift, residual), 2e-5, "output");
}

TEST(Spmm, RefusesToAddWhatDoesNotFit) {
  const PatternCase one = random_pattern(4, 3, 5, 1);
  const Csr csr = one.csr();
  const Tensor x = Tensor::zeros({3, 6}, DType::f16);
  const auto said = [&](const RowAddends& added, EntryReduction reduction = EntryReduction::sum,
                        const SparsePlan* plan = nullptr) {
    return message_of([&] { spmm(csr.view(), {}, x, reduction, {}, plan, added); });
  };
  const Tensor shift = Tensor::zeros({6}, DType::f32);
  EXPECT_EQ(said({.shift = shift}, EntryReduction::max),
            "spmm: something is added to the rows of a maximum or minimum: add it to the result");
  const SparsePlan cut{.format = SparseFormat::ell, .width = 8, .ranges = RangeSchedule{}};
  EXPECT_EQ(said({.shift = shift}, EntryReduction::sum, &cut),
            "spmm: something is added to rows that a plan has cut into parts: give a plan of csr, "
            "or none");
  EXPECT_EQ(said({.shift = Tensor::zeros({5}, DType::f32)}),
            "spmm: added.shift has shape [5]; it must be [6], one value a channel");
  EXPECT_EQ(said({.shift = Tensor::zeros({6}, DType::f16)}),
            "spmm: added.shift holds f16; for features of f16 it must be f32");
  EXPECT_EQ(said({.residual = Tensor::zeros({3, 6}, DType::f16)}),
            "spmm: added.residual has 3 rows and the pattern 4 rows: give one row for each");
  EXPECT_EQ(said({.residual = Tensor::zeros({4, 6}, DType::f32)}),
            "spmm: added.residual holds f32 but features holds f16; convert one of them");
  EXPECT_EQ(said({.residual = Tensor::zeros({4, 5}, DType::f16)}),
            "spmm: added.residual has shape [4, 5]; its extent 1 must be 6, the channels of the "
            "features");
}

TEST(Spmm, GivesTheSameBitsForAnyNumberOfThreads) {
  const PatternCase one = random_pattern(3000, 2000, 90'000, 6);
  const Tensor x = random_tensor({2000, 24}, DType::f32, 1);
  const Tensor values = random_tensor({90'000, 2}, DType::f32, 2);
  const Csr csr = one.csr();
  for (const EntryReduction reduction : kReductions) {
    set_threads(1);
    const SpmmResult alone = spmm(csr.view(), values, x, reduction);
    set_threads(4);
    const SpmmResult together = spmm(csr.view(), values, x, reduction);
    set_threads(0);
    EXPECT_TRUE(same_bits(alone.output, together.output));
    if (picks(reduction)) {
      EXPECT_TRUE(same_bits(alone.source, together.source));
    }
  }
}

TEST(Spmm, ReadsNoRowThatNoEntryNames) {
  const PatternCase one{"", 3, 3, {0, 2}, {1, 1}};
  Tensor x = Tensor::full({3, 4}, DType::f32, std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t c = 0; c < 4; ++c)
    x.span<float>()[static_cast<std::size_t>(4 + c)] = 2;
  Tensor dirty = Tensor::full({3, 4}, DType::f32, 7);   // nobody cleared it
  const Csr csr = one.csr();
  const SpmmResult got = spmm(csr.view(), {}, x, EntryReduction::sum, {.output = Place(dirty)});
  Tensor expected = Tensor::full({3, 4}, DType::f32, 2);
  for (std::int64_t c = 0; c < 4; ++c)
    expected.span<float>()[static_cast<std::size_t>(4 + c)] = 0;
  EXPECT_TRUE(same_bits(got.output, expected));
}

TEST(Spmm, OfEqualsTheFirstIsPickedAndNotANumberBeforeAny) {
  const PatternCase one{"", 2, 4, {0, 0, 0, 1, 1, 1}, {0, 1, 2, 2, 3, 0}};
  Tensor x({4, 1}, DType::f32);
  const float values[] = {1, 1, 0, std::numeric_limits<float>::quiet_NaN()};
  std::ranges::copy(values, x.span<float>().begin());
  const Csr csr = one.csr();
  const SpmmResult most = spmm(csr.view(), {}, x, EntryReduction::max);
  EXPECT_EQ(most.source.span<std::int64_t>()[0], 0);
  EXPECT_EQ(most.source.span<std::int64_t>()[1], 4);
  EXPECT_TRUE(std::isnan(most.output.span<float>()[1]));
  const SpmmResult least = spmm(csr.view(), {}, x, EntryReduction::min);
  EXPECT_EQ(least.source.span<std::int64_t>()[0], 2);
  EXPECT_EQ(least.source.span<std::int64_t>()[1], 4);
}

TEST(Sddmm, IsTheDotProductOfTheRowsOfEachEntry) {
  for (const PatternCase& one : pattern_cases()) {
    const Csr csr = one.csr();
    for (const Kind& kind : kKinds) {
      for (const std::int64_t channels : {0, 6, 33, 96}) {
        const std::int64_t heads = channels == 33 ? 1 : 3;
        const Tensor left = random_tensor({one.rows, channels}, kind.type, 1);
        const Tensor right = random_tensor({one.columns, channels}, kind.type, 2);
        const Tensor expected = dots(one, left.to(DType::f64), right.to(DType::f64), heads);
        SCOPED_TRACE(one.name + ", " + std::to_string(channels));
        expect_near(sddmm(csr.view(), left, right, heads), expected, kind.tolerance, "values");
      }
    }
  }
}

// Places in a row are counted in 32 bits on a device. The lists are not looked at.
TEST(Spmm, RefusesAPatternOnADeviceWhoseRowsMayBeTooLong) {
  const std::int64_t begin[] = {0, kMostWholeRow + 1};
  const std::int32_t column[] = {0};
  CsrView pattern{.rows = 1,
                  .columns = 1,
                  .row_begin = begin,
                  .column = {column, static_cast<std::size_t>(kMostWholeRow + 1)},
                  .device = {DeviceKind::cuda, 0}};
  const std::string says =
      ": a pattern of 1073741825 entries on a device has no list of long rows: give at most "
      "1073741824, or the view of a Csr that copy_to, transposed or a list of entries made";
  EXPECT_EQ(message_of([&] { spmm(pattern, {}, {}); }), "spmm" + says);
  EXPECT_EQ(message_of([&] { spmm_features_gradient(pattern, pattern, {}, {}); }),
            "spmm_features_gradient" + says);
  EXPECT_EQ(message_of([&] { edge_scores_gradient(pattern, pattern, {}, {}); }),
            "edge_scores_gradient" + says);
  pattern.column = {column, static_cast<std::size_t>(kMostWholeRow)};
  EXPECT_NE(message_of([&] { spmm(pattern, {}, {}); }), "spmm" + says);
}

TEST(Spmm, RefusesWhatDoesNotFit) {
  const PatternCase one = random_pattern(4, 3, 5, 1);
  const Csr csr = one.csr();
  const Tensor x = Tensor::zeros({3, 6}, DType::f32), g = Tensor::zeros({4, 6}, DType::f32);
  const auto said = [&](ConstTensorView values, ConstTensorView features) {
    return message_of([&] { spmm(csr.view(), values, features); });
  };
  EXPECT_EQ(said({}, g),
            "spmm: features has 4 rows and the pattern 3 columns: give one row for each");
  EXPECT_EQ(said(Tensor::zeros({4}, DType::f32), x),
            "spmm: values have shape [4]: give [5] or [5, heads], one for each entry");
  EXPECT_EQ(said(Tensor::zeros({5, 4}, DType::f32), x),
            "spmm: 4 heads of 6 channels: give a divisor");
  EXPECT_EQ(said(Tensor::zeros({5}, DType::f16), x),
            "spmm: values holds f16 but features holds f32; convert one of them");
  EXPECT_EQ(message_of([&] { spmm_features_gradient(csr.view(), csr.view(), {}, g); }),
            "spmm_features_gradient: backwards has 4 x 3 and 5 entries, and the pattern 4 x 3 and "
            "5 entries: give transposed(pattern)");
  EXPECT_EQ(message_of([&] { spmm_values_gradient(csr.view(), x, g, 1, {}, EntryReduction::max); }),
            "spmm_values_gradient: source is undefined for a gradient of [4, 6]: give what spmm "
            "returned for max or min");
  EXPECT_EQ(message_of([&] {
              sddmm(csr.view(), g, Tensor::zeros({3, 5}, DType::f32));
            }),
            "sddmm: left has 6 channels and right 5: give as many");
}

}   // namespace
}   // namespace pumice::test
