// Every format holds each entry of its pattern once, says which it is, and becomes the pattern
// again. Covers decompositions, decomposed, cut_parts, hyb and sorted_places.
#include <pumice/formats/decompositions.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/every_format.hpp"
#include "graphs/random_pattern.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

using formats::Entry;
using Numbers = std::vector<std::int64_t>;

template <class T> Numbers numbers(std::span<const T> list) {
  return {list.begin(), list.end()};
}

/// 3 x 6: row 0 has columns 5, 0, 4, row 1 none, row 2 has 3 and twice 1.
PatternCase small() {
  return {"small", 3, 6, {2, 0, 2, 0, 2, 0}, {3, 5, 1, 0, 1, 4}};
}

void expect_same(const CsrView& a, const CsrView& b) {
  ASSERT_EQ(a.rows, b.rows);
  ASSERT_EQ(a.columns, b.columns);
  ASSERT_EQ(numbers(a.row_begin), numbers(b.row_begin));
  ASSERT_EQ(numbers(a.column), numbers(b.column));
  for (std::int64_t place = 0; place < a.entries(); ++place)
    ASSERT_EQ(a.number_of(place), b.number_of(place)) << place;
}

TEST(Decompositions, HoldEveryEntryOnceAndBecomeThePatternAgain) {
  std::vector<PatternCase> cases = pattern_cases();
  cases.push_back(small());
  std::uint64_t seed = 0;
  for (const PatternCase& one : cases) {
    const Csr csr_of_case = one.csr();
    const Csr back = transposed(csr_of_case.view());
    for (const CsrView& pattern : {csr_of_case.view(), back.view()}) {
      for (const NamedFormat& format : every_format(pattern, ++seed)) {
        SCOPED_TRACE(one.name + ", " + format.name);
        EXPECT_NO_THROW(validate(format.parts, pattern));
        EXPECT_NO_THROW(validate(format.parts));
        const Csr again = csr(format.parts);
        expect_same(again.view(), pattern);
      }
    }
  }
}

TEST(Decompositions, AnEllIsLinesOfOneWidth) {
  const Csr pattern = small().csr();
  const Decomposed made = formats::ell(pattern.view(), 2);
  ASSERT_EQ(made.parts().size(), 1U);
  const PartView& part = made.views()[0];
  EXPECT_EQ(numbers(part.row), (Numbers{0, 0, 2, 2}));
  EXPECT_EQ(numbers(part.column), (Numbers{5, 0, 4, -1, 3, 1, 1, -1}));
  EXPECT_EQ(numbers(part.entry), (Numbers{1, 3, 5, -1, 0, 2, 4, -1}));
  EXPECT_TRUE(part.slot_begin.empty());
  EXPECT_EQ(formats::ell(pattern.view()).views()[0].shape.width, 3);
}

TEST(Decompositions, AHybHasPartsOfColumnsAndWidths) {
  const Csr pattern = small().csr();
  const Decomposed made = formats::hyb(pattern.view(), {.column_parts = 2, .widths = {1, 2}});
  ASSERT_EQ(made.parts().size(), 4U);   // columns 0 to 2 and 3 to 5, each of widths 1 and 2
  EXPECT_EQ(numbers(made.views()[0].row), (Numbers{0}));
  EXPECT_EQ(numbers(made.views()[0].entry), (Numbers{3}));
  EXPECT_EQ(numbers(made.views()[1].row), (Numbers{2}));
  EXPECT_EQ(numbers(made.views()[1].entry), (Numbers{2, 4}));
  EXPECT_EQ(numbers(made.views()[2].row), (Numbers{2}));
  EXPECT_EQ(numbers(made.views()[3].entry), (Numbers{1, 5}));
}

TEST(Decompositions, AHybWithoutWidthsIsAsWideAsTheMeanRow) {
  const PatternCase one = random_pattern(100, 50, 1700, 4);   // 17 of a row
  const Csr pattern = one.csr(), nothing = PatternCase{"", 4, 4, {}, {}}.csr();
  EXPECT_EQ(formats::hyb(pattern.view()).parts().size(), 6U);
  EXPECT_EQ(formats::hyb(nothing.view()).parts().size(), 1U);
}

TEST(Decompositions, BlocksAscendAndARepeatedEntryHasABlockOfItsOwn) {
  const Csr pattern = small().csr();
  const Decomposed made = formats::bsr(pattern.view(), 2, 2);
  const PartView& part = made.views()[0];
  EXPECT_EQ(numbers(part.row), (Numbers{0, 1}));
  EXPECT_EQ(numbers(part.slot_begin), (Numbers{0, 2, 5}));
  EXPECT_EQ(numbers(part.column), (Numbers{0, 2, 0, 0, 1}));
  EXPECT_EQ(numbers(part.entry), (Numbers{3,  -1, -1, -1, 5,  1, -1, -1, -1, 2, -1, -1,   //
                                          -1, 4,  -1, -1, -1, 0, -1, -1}));
}

TEST(Decompositions, OnlyRowsWithEntriesAreInWhatIsDoublyCompressed) {
  const Csr pattern = PatternCase{"", 9, 4, {7, 3, 7}, {0, 1, 2}}.csr();
  EXPECT_EQ(numbers(formats::dcsr(pattern.view()).views()[0].row), (Numbers{3, 7}));
  EXPECT_EQ(numbers(formats::dbsr(pattern.view(), 2, 2).views()[0].row), (Numbers{1, 3}));
  EXPECT_EQ(formats::bsr(pattern.view(), 2, 2).views()[0].lines(), 5);
  EXPECT_EQ(formats::identity(pattern.view()).views()[0].lines(), 9);
}

TEST(Decompositions, VectorsAndRowsArePaddedToGroups) {
  const Csr pattern = small().csr();
  const Decomposed vectors = formats::sr_bcrs(pattern.view(), 2, 4);
  EXPECT_EQ(numbers(vectors.views()[0].column), (Numbers{0, 4, 5, -1, 1, 1, 3, -1}));
  const Decomposed padded = formats::padded_csr(pattern.view(), 2);
  EXPECT_EQ(numbers(padded.views()[0].slot_begin), (Numbers{0, 4, 4, 8}));
  EXPECT_EQ(numbers(padded.views()[0].column), (Numbers{5, 0, 4, -1, 3, 1, 1, -1}));
}

TEST(Decompositions, LinesOfTypedEdgesAreOfOneTypeEach) {
  const Csr pattern = small().csr();
  const Tensor type = i64({1, 1, 0, 3, 1, 1});
  const Decomposed made = formats::csf(pattern.view(), {type.view(), 4});
  const PartView& part = made.views()[0];
  EXPECT_EQ(numbers(part.type_begin), (Numbers{0, 1, 3, 3, 4}));
  EXPECT_EQ(numbers(part.row), (Numbers{2, 0, 2, 0}));
  EXPECT_EQ(numbers(part.entry), (Numbers{2, 1, 5, 0, 4, 3}));
  const Decomposed buckets = formats::hyb(pattern.view(), {.widths = {1, 2}}, {type.view(), 4});
  EXPECT_EQ(numbers(buckets.views()[0].type_begin), (Numbers{0, 1, 1, 1, 2}));
  EXPECT_EQ(numbers(buckets.views()[1].type_begin), (Numbers{0, 0, 2, 2, 2}));
}

TEST(Decompositions, WholeBlocksNumberTheirPositions) {
  Tensor mask({2, 3}, DType::u8);
  std::ranges::copy(std::vector<std::uint8_t>{1, 0, 1, 0, 1, 0}, mask.span<std::uint8_t>().begin());
  const Decomposed of_mask = formats::block_mask(mask, 2, 3);
  EXPECT_EQ(of_mask.rows(), 4);
  EXPECT_EQ(of_mask.columns(), 9);
  EXPECT_EQ(of_mask.entries(), 18);
  EXPECT_EQ(numbers(of_mask.row_begin()), (Numbers{0, 6, 12, 15, 18}));
  EXPECT_NO_THROW(validate(of_mask));
  const Csr pattern = csr(of_mask);
  EXPECT_EQ(numbers(pattern.view().column),
            (Numbers{0, 1, 2, 6, 7, 8, 0, 1, 2, 6, 7, 8, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(pattern.view().number_of(3), 6);
  EXPECT_NO_THROW(validate(of_mask, pattern.view()));
  const Decomposed same = formats::blocks(4, 9, 2, 3, i32({0, 2, 3}), i64({0, 2, 1}));
  const Csr again = csr(same);
  expect_same(again.view(), pattern.view());
}

TEST(Decompositions, RefuseWhatDoesNotFit) {
  const Csr pattern = small().csr();
  const CsrView view = pattern.view();
  EXPECT_EQ(message_of([&] { formats::ell(view, -1); }),
            "ell: part 0 has a width of -1 and a multiple of 1: give a width from 1 on, or 0 for "
            "none, and a multiple from 1 on");
  EXPECT_EQ(message_of([&] { formats::bsr(view, 0, 2); }),
            "bsr: part 0 has blocks of 0 x 2: give at least 1 x 1 and at most 67108864 positions");
  EXPECT_EQ(message_of([&] {
              formats::hyb(view, {.widths = {2, 2}});
            }),
            "hyb: widths[1] = 2: give widths from 1 on, each larger than the one before");
  EXPECT_EQ(message_of([&] { formats::hyb(view, {.column_parts = 0}); }),
            "hyb: column_parts = 0 for 3 widths: give 1 on, and at most 1048576 parts");
  EXPECT_EQ(message_of([&] { formats::csf(view, {}); }),
            "csf: no types: give the type of each entry");
  const Tensor few = i64({0}), beyond = i64({0, 1, 2, 0, 5, 0});
  EXPECT_EQ(message_of([&] {
              formats::csf(view, {few.view(), 1});
            }),
            "csf: types are i64 [1]: give i32 or i64 [6], one for each entry");
  EXPECT_EQ(message_of([&] {
              formats::csf(view, {beyond.view(), 3});
            }),
            "csf: types[4] = 5 where there are 3: give numbers from 0 on");
  const std::vector<PartShape> two(2);
  EXPECT_EQ(message_of([&] {
              formats::decompose(view, two, [](const Entry& entry) { return entry.number / 2; });
            }),
            "decompose: entry 5 at row 0 and column 4 is given to part 2 where there are 2: give "
            "numbers from 0 on");
  EXPECT_EQ(message_of([&] { formats::decompose(view, {}, [](const Entry&) { return 0; }); }),
            "decompose: no parts for 6 entries: give a shape for each part");
  EXPECT_EQ(message_of([&] {
              formats::blocks(5, 9, 2, 3, i32({0, 1}), i32({0}));
            }),
            "blocks: 5 x 9 in blocks of 2 x 3: give multiples, of at most 2147483647");
  EXPECT_EQ(message_of([&] {
              formats::blocks(4, 9, 2, 3, i32({0, 1}), i32({0}));
            }),
            "blocks: block_row_begin has 2 bounds for 2 rows of blocks and 1 blocks: give one more "
            "than rows, ascending from 0 to the number of blocks");
  EXPECT_EQ(message_of([&] {
              formats::blocks(4, 9, 2, 3, i32({0, 1, 1}), i32({3}));
            }),
            "blocks: block_column[0] = 3 where there are 3: give numbers from 0 on");
  CsrView elsewhere = view;
  elsewhere.device = {DeviceKind::cuda, 0};
  EXPECT_EQ(message_of([&] { formats::dcsr(elsewhere); }),
            "dcsr: the pattern is on cuda:0 and the stream on cpu: give a stream of the pattern's "
            "device");
}

TEST(Decompositions, WhatWouldBeNearlyAllPaddingIsRefused) {
  PatternCase heavy{"", 30'000, 30'000, {}, {}};
  for (std::int64_t e = 0; e < 30'000; ++e) {
    heavy.row.push_back(e % 2 == 0 ? 0 : e);
    heavy.column.push_back(e);
  }
  const Csr pattern = heavy.csr();
  EXPECT_EQ(message_of([&] { formats::ell(pattern.view()); }),
            "ell: more than 67108864 positions for 30000 entries, nearly all of them padding: give "
            "a smaller width or smaller blocks, or take hyb or dcsr");
  EXPECT_NO_THROW(validate(formats::ell(pattern.view(), 8), pattern.view()));
}

}   // namespace
}   // namespace pumice::test
