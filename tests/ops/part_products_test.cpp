// Products over every format beside loops over a list of entries in float64, on random patterns:
// PUMICE_RANDOM_PROBLEMS and PUMICE_RANDOM_SEED say how many, and where they begin. Also part_rows.
#include <pumice/ops/part_products.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pumice/core/parallel.hpp>

#include "formats/every_format.hpp"
#include "graphs/drawn_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/spmm_reference.hpp"
#include "support/message_of.hpp"
#include "support/random_problems.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 600'000;
constexpr std::uint64_t kProblems = 400;

struct Drawn {
  PatternCase pattern;
  Kind kind;
  std::int64_t channels, heads;
  bool is_weighted;
};

Drawn drawn(std::uint64_t seed) {
  Random random(seed);
  Drawn made{drawn_pattern(random, seed), kKinds[random.integer(0, 3)], 0, 1, false};
  made.heads = random.integer(1, 3);
  made.channels = made.heads * random.integer(0, 12);
  made.is_weighted = random.integer(0, 3) > 0;
  return made;
}

/// What a product says about itself: empty, or which format differs and where.
std::string complaint_about(std::uint64_t seed) {
  const Drawn one = drawn(seed);
  const std::int64_t rows = one.pattern.rows, entries = one.pattern.entries();
  Tensor x = random_tensor({one.pattern.columns, one.channels}, one.kind.type, seed);
  Tensor left = random_tensor({rows, one.channels}, one.kind.type, seed + 1);
  spoil_unread(x, one.pattern.column);
  spoil_unread(left, one.pattern.row);
  const Tensor values =
      one.is_weighted ? random_tensor({entries, one.heads}, one.kind.type, seed + 2) : Tensor();
  const ConstTensorView weights = one.is_weighted ? values.view() : ConstTensorView();
  const Csr of = one.pattern.csr();
  const Tensor products = dots(one.pattern, left.to(DType::f64), x.to(DType::f64), one.heads);
  std::vector<Reference> references;
  for (const EntryReduction reduction : kReductions)
    references.emplace_back(one.pattern, one.is_weighted ? values.to(DType::f64) : Tensor(),
                            x.to(DType::f64), left.to(DType::f64), one.heads, reduction);
  for (const NamedFormat& format : every_format(of.view(), seed)) {
    const std::string name = "seed " + std::to_string(seed) + ", " + format.name + ": ";
    validate(format.parts, of.view(), name.c_str());
    for (std::size_t r = 0; r < references.size(); ++r) {
      const EntryReduction reduction = kReductions[r];
      Tensor output = dirty({rows, one.channels}, one.kind.type);
      Tensor source = dirty({rows, one.channels}, DType::i64);
      const SpmmResult got = spmm(format.parts, weights, x, reduction,
                                  {.output = Place(output), .source = Place(source)});
      const std::string said = difference(got.output, references[r].output, one.kind.tolerance);
      if (!said.empty()) return name + "reduction " + std::to_string(r) + ", " + said;
      if (picks(reduction) && !same_bits(got.source, references[r].source))
        return name + "reduction " + std::to_string(r) + ", another entry was picked";
    }
    Tensor output = dirty({entries, one.heads}, one.kind.type);
    const std::string said = difference(sddmm(format.parts, left, x, one.heads, Place(output)),
                                        products, one.kind.tolerance);
    if (!said.empty()) return name + "sddmm, " + said;
  }
  return {};
}

TEST(PartProducts, AgreeWithTheReferenceInEveryFormat) {
  check_seeds(
      seeds_from_environment(kSeed, kProblems), [] { return 0; },
      [](std::uint64_t seed, int) { return complaint_about(seed); });
}

TEST(PartProducts, GiveTheSameBitsForAnyNumberOfThreads) {
  const PatternCase one = random_pattern(3000, 2000, 90'000, 6);
  const Tensor x = random_tensor({2000, 24}, DType::f32, 1);
  const Tensor left = random_tensor({3000, 24}, DType::f32, 3);
  const Tensor values = random_tensor({90'000, 2}, DType::f32, 2);
  const Csr pattern = one.csr();
  for (const NamedFormat& format : every_format(pattern.view(), 11)) {
    SCOPED_TRACE(format.name);
    for (const EntryReduction reduction : kReductions) {
      set_threads(1);
      const SpmmResult alone = spmm(format.parts, values, x, reduction);
      set_threads(4);
      const SpmmResult together = spmm(format.parts, values, x, reduction);
      EXPECT_TRUE(same_bits(alone.output, together.output));
      if (picks(reduction)) {
        EXPECT_TRUE(same_bits(alone.source, together.source));
      }
    }
    set_threads(1);
    const Tensor alone = sddmm(format.parts, left, x, 3);
    set_threads(4);
    EXPECT_TRUE(same_bits(alone, sddmm(format.parts, left, x, 3)));
    set_threads(0);
  }
}

TEST(PartProducts, PickTheFirstInTheOrderOfThePattern) {
  // A transpose, whose numbers do not ascend within rows; everything is equal.
  const PatternCase one = random_pattern(20, 12, 300, 3);
  const Csr pattern = one.csr();
  const Csr back = transposed(pattern.view());
  const Tensor x = Tensor::full({20, 5}, DType::f32, 1);
  for (const EntryReduction reduction : {EntryReduction::max, EntryReduction::min}) {
    const SpmmResult expected = spmm(back.view(), {}, x, reduction);
    for (const NamedFormat& format : every_format(back.view(), 12)) {
      SCOPED_TRACE(format.name);
      const SpmmResult got = spmm(format.parts, {}, x, reduction);
      EXPECT_TRUE(same_bits(got.source, expected.source));
      EXPECT_TRUE(same_bits(got.output, expected.output));
    }
  }
}

TEST(PartProducts, TakeWholeBlocks) {
  Tensor mask({2, 3}, DType::u8);
  std::ranges::copy(std::vector<std::uint8_t>{1, 0, 1, 0, 1, 0}, mask.span<std::uint8_t>().begin());
  const Decomposed parts = formats::block_mask(mask, 4, 8);
  const Csr pattern = csr(parts);
  const Tensor x = random_tensor({24, 6}, DType::f32, 1),
               left = random_tensor({8, 6}, DType::f32, 2);
  const Tensor values = random_tensor({96, 3}, DType::f32, 3);
  for (const EntryReduction reduction : kReductions)
    EXPECT_TRUE(same_bits(spmm(parts, values, x, reduction).output,
                          spmm(pattern.view(), values, x, reduction).output));
  EXPECT_TRUE(same_bits(sddmm(parts, left, x, 2), sddmm(pattern.view(), left, x, 2)));
}

TEST(PartProducts, AgreeOnALargePattern) {
  // 1.7 million rows, most of them without entries, one with 150,000.
  constexpr std::int64_t kRows = 1'710'902, kColumns = 4000;
  PatternCase one = random_pattern(kRows, kColumns, 400'000, 21);
  std::fill_n(one.row.begin(), 150'000, kRows - 1);
  const Csr pattern = one.csr();
  const Tensor x = random_tensor({kColumns, 4}, DType::f32, 1);
  const SpmmResult sum = spmm(pattern.view(), {}, x.to(DType::f64));
  const SpmmResult most = spmm(pattern.view(), {}, x, EntryReduction::max);
  for (const NamedFormat& format : every_format(pattern.view(), 13)) {
    SCOPED_TRACE(format.name);
    const Tensor got = spmm(format.parts, {}, x.to(DType::f64)).output;
    EXPECT_EQ(difference(got, sum.output, 1e-9), "");
    EXPECT_TRUE(same_bits(spmm(format.parts, {}, x, EntryReduction::max).source, most.source));
  }
}

TEST(PartProducts, RefuseWhatDoesNotFit) {
  const PatternCase one = random_pattern(4, 3, 5, 1);
  const Csr pattern = one.csr();
  const Decomposed parts = formats::hyb(pattern.view());
  const Tensor x = Tensor::zeros({3, 6}, DType::f32), g = Tensor::zeros({4, 6}, DType::f32);
  EXPECT_EQ(message_of([&] { spmm(parts, {}, g); }),
            "spmm: features has 4 rows and the pattern 3 columns: give one row for each");
  EXPECT_EQ(message_of([&] { spmm(parts, Tensor::zeros({4}, DType::f32), x); }),
            "spmm: values have shape [4]: give [5] or [5, heads], one for each entry");
  EXPECT_EQ(message_of([&] {
              spmm(parts, Tensor::zeros({5, 4}, DType::f32), x);
            }),
            "spmm: 4 heads of 6 channels: give a divisor");
  EXPECT_EQ(message_of([&] {
              sddmm(parts, g, Tensor::zeros({3, 5}, DType::f32));
            }),
            "sddmm: right has shape [3, 5]; its extent 1 must be 6, as left has");
  EXPECT_EQ(message_of([&] { sddmm(parts, g, x, 4); }),
            "sddmm: 4 heads of 6 channels: give a divisor");
  EXPECT_EQ(message_of([&] { spmm(Decomposed(), {}, x); }),
            "spmm: this Decomposed is empty: give what formats:: functions return");
}

}   // namespace
}   // namespace pumice::test
