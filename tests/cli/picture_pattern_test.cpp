// Pictures of patterns show entries where they are, and bars as long as there are rows.
#include "cli/picture_pattern.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

namespace pumice::cli {
namespace {

using Numbers = std::vector<std::int64_t>;

EdgesInput matrix(std::int64_t rows, std::int64_t columns, const Numbers& row,
                  const Numbers& column) {
  const auto entries = static_cast<std::int64_t>(row.size());
  EdgesInput edges{.name = "matrix", .rows = rows, .columns = columns};
  edges.row = Tensor::from(std::span<const std::int64_t>(row), {entries});
  edges.column = Tensor::from(std::span<const std::int64_t>(column), {entries});
  return edges;
}

Image draw(const EdgesInput& edges, const PictureOptions& options = {}) {
  return render_pattern(edges, length_classes(row_lengths(edges)), options);
}

std::array<int, 3> pixel(const Image& image, int x, int y) {
  const auto at = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
                       static_cast<std::size_t>(x));
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

int brightness(const Image& image, int x, int y) {
  const auto [r, g, b] = pixel(image, x, y);
  return r + g + b;
}

// Of 1600 x 900: the panel of the pattern begins at (12, 36) and has 852 pixels a side.
constexpr int kLeft = 12, kTop = 36, kSide = 852;

TEST(PatternPicture, ClassesAreThoseOfACount) {
  EXPECT_TRUE(length_classes({}).empty());
  for (const std::int64_t rows : {1, 31, 33, 1000}) {
    Numbers lengths;
    for (std::int64_t r = 0; r < rows; ++r)
      lengths.push_back(r * r % 77);
    const std::vector<LengthClass> classes = length_classes(lengths);
    std::int64_t begin = 0;   // each begins where the one before ends
    for (const LengthClass& one : classes) {
      EXPECT_EQ(one.from, begin);
      EXPECT_EQ(one.to, std::max<std::int64_t>(0, 2 * one.from - 1));
      std::int64_t counted = 0;
      for (const std::int64_t length : lengths)
        counted += length >= one.from && length <= one.to ? 1 : 0;
      EXPECT_EQ(one.rows, counted) << one.from;
      begin = one.to + 1;
    }
    EXPECT_GT(classes.back().rows, 0);
    EXPECT_EQ(begin > *std::ranges::max_element(lengths), true);
  }
  EXPECT_EQ(range_of({.from = 1, .to = 1}), "1");
  EXPECT_EQ(range_of({.from = 1024, .to = 2047}), "1,024-2,047");
}

TEST(PatternPicture, HasTheSizeAskedFor) {
  const EdgesInput edges = matrix(3, 3, {0, 1}, {2, 0});
  for (const auto& [width, height] : {std::pair{1600, 900}, {320, 240}, {501, 777}, {240 * 5, 240}})
    EXPECT_EQ(
        draw(edges, {.width = width, .height = height, .caption = "three rows"}).pixels.size(),
        static_cast<std::size_t>(width * height * 3));
  for (const auto& [width, height] : {std::pair{319, 900}, {1600, 239}, {16385, 900}})
    EXPECT_THROW(draw(edges, {.width = width, .height = height}), UserError);
}

TEST(PatternPicture, AFewEntriesAreRectanglesWhereTheyLie) {
  const EdgesInput edges = matrix(4, 4, {0, 1, 3}, {1, 0, 3});
  const Image image = draw(edges);
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 4; ++column) {
      const bool entry =
          (row == 0 && column == 1) || (row == 1 && column == 0) || (row == 3 && column == 3);
      for (const int inside : {2, kSide / 8, kSide / 4 - 2})
        EXPECT_EQ(brightness(image, kLeft + column * kSide / 4 + inside,
                             kTop + row * kSide / 4 + inside) > 300,
                  entry)
            << row << ' ' << column << ' ' << inside;
    }
  }
}

TEST(PatternPicture, ManyEntriesInOnePlaceAreBrighterThanOne) {
  // One in a corner, ten in the middle, a hundred in the other corner, in a matrix of many rows.
  constexpr std::int64_t kRows = 100'000;
  Numbers row{0}, column{0};
  for (int i = 0; i < 110; ++i) {
    row.push_back(i < 10 ? kRows / 2 : kRows - 1);
    column.push_back(row.back());
  }
  const Image image = draw(matrix(kRows, kRows, row, column));
  const int none = brightness(image, kLeft + kSide / 4, kTop + 3);
  const int one = brightness(image, kLeft, kTop);
  const int ten = brightness(image, kLeft + kSide / 2, kTop + kSide / 2);
  const int hundred = brightness(image, kLeft + kSide - 1, kTop + kSide - 1);
  EXPECT_LT(none + 60, one);
  EXPECT_LT(one, ten);
  EXPECT_LT(ten, hundred);
}

TEST(PatternPicture, TheLongerSideFillsThePanel) {
  const Image wide = draw(matrix(1, 1000, {0, 0}, {0, 999}));
  EXPECT_GT(brightness(wide, kLeft + kSide - 1, kTop + kSide / 16 - 1), 300);
  EXPECT_LT(brightness(wide, kLeft + kSide - 1, kTop + kSide / 16 + 1), 60);   // below it nothing
  const Image tall = draw(matrix(1000, 500, {0, 999}, {0, 499}));
  EXPECT_GT(brightness(tall, kLeft + kSide / 2 - 1, kTop + kSide - 1), 300);
  EXPECT_LT(brightness(tall, kLeft + kSide / 2 + 1, kTop + kSide - 1), 60);
}

TEST(PatternPicture, BarsAreAsLongAsThereAreRows) {
  // Six rows of one entry, three of two, none empty.
  const EdgesInput edges =
      matrix(9, 9, {0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8}, {0, 1, 2, 3, 4, 5, 6, 0, 7, 0, 8, 0});
  const Image image = draw(edges);
  std::vector<int> lengths;   // of the bars of 0, 1, 2-3
  for (int line = 0; line < 3; ++line) {
    const int y = kTop + 32 + 28 * line + 7;
    int pixels = 0;
    for (int x = kLeft + kSide + 48; x < image.width; ++x) {
      const auto [r, g, b] = pixel(image, x, y);
      pixels += r > 150 && b < 120 ? 1 : 0;   // orange; text is grey
    }
    lengths.push_back(pixels);
  }
  EXPECT_EQ(lengths[0], 0);
  EXPECT_GT(lengths[1], 300);
  EXPECT_NEAR(lengths[2], lengths[1] / 2.0, 1);
}

TEST(PatternPicture, OddMatricesDoNotHurt) {
  for (const auto& [rows, columns] : {std::pair{0, 0}, {0, 5}, {5, 0}, {1, 1}, {31, 33}}) {
    const Image image = draw(matrix(rows, columns, {}, {}), {.caption = "no entries"});
    EXPECT_EQ(image.pixels.size(), 1600u * 900u * 3u);
    EXPECT_LT(brightness(image, kLeft + 5, kTop + 5), 100) << rows;
  }
  // One row with all entries, each of them twice.
  Numbers row(66, 32), column;
  for (std::int64_t i = 0; i < 66; ++i)
    column.push_back(i % 33);
  const Image image = draw(matrix(33, 33, row, column));
  EXPECT_GT(brightness(image, kLeft + kSide / 2, kTop + kSide - 3), 300);
  EXPECT_LT(brightness(image, kLeft + kSide / 2, kTop + kSide / 2), 100);
}

}   // namespace
}   // namespace pumice::cli
