// Text takes the room it says it takes, and any bytes are text.
#include "cli/picture_font.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <gtest/gtest.h>

namespace pumice::cli {
namespace {

/// What a text covers: the pixels in all, and their extent.
struct Cover {
  std::int64_t sum = 0;
  int left = 1 << 20, right = -(1 << 20), top = 1 << 20, bottom = -(1 << 20);
};

Cover cover_of(const Font& font, std::string_view text) {
  Cover cover;
  font.set(text, [&](int pen, const Glyph& glyph) {
    for (int y = 0; y < glyph.height; ++y) {
      for (int x = 0; x < glyph.width; ++x) {
        const int value = glyph.cover[static_cast<std::size_t>(y * glyph.width + x)];
        if (value == 0) continue;
        cover.sum += value;
        cover.left = std::min(cover.left, pen + glyph.left + x);
        cover.right = std::max(cover.right, pen + glyph.left + x + 1);
        cover.top = std::min(cover.top, glyph.top + y);
        cover.bottom = std::max(cover.bottom, glyph.top + y + 1);
      }
    }
  });
  return cover;
}

TEST(PictureFont, CapitalsAreAsHighAsSaidAndTextAsWide) {
  for (const int size : {8, 10, 20, 37, 80}) {
    const Font font(size);
    EXPECT_NEAR(font.capital_height(), 0.729 * size, 0.5);
    const Cover h = cover_of(font, "HHH");
    EXPECT_NEAR(-h.top, font.capital_height(), 1);
    EXPECT_EQ(h.bottom, 0);
    EXPECT_GE(h.left, 0);
    EXPECT_LE(h.right, font.width("HHH"));
    EXPECT_GT(h.right, font.width("HHH") - size / 4 - 2);
    EXPECT_GT(cover_of(font, "g").bottom, 0);   // below the line
    EXPECT_EQ(cover_of(font, " ").sum, 0);
    EXPECT_LT(font.width("iiii"), font.width("mmmm"));
    EXPECT_EQ(font.width(""), 0);
  }
}

TEST(PictureFont, EdgesAreSoft) {
  const Font font(20);
  bool partial = false;
  font.set("O", [&](int, const Glyph& glyph) {
    partial = std::ranges::any_of(glyph.cover, [](int value) { return value > 60 && value < 200; });
  });
  EXPECT_TRUE(partial);
}

TEST(PictureFont, LettersOfOtherLanguagesAreLetters) {
  const Font font(20);
  const auto unknown = cover_of(font, "\xef\xbf\xbd").sum;
  EXPECT_GT(unknown, 0);
  for (const char* letter : {"ß", "é", "Ł", "ω", "Ж", "−", "…", "→", "µ", "²"}) {
    const auto own = cover_of(font, letter).sum;
    EXPECT_GT(own, 0) << letter;
    EXPECT_NE(own, unknown) << letter;
  }
  // What the font lacks, control characters and bytes that are no UTF-8: one sign for each.
  for (const std::string text : {"漢", "\x01", "\x7f", "\xff", "\xc3", "\x80"})
    EXPECT_EQ(cover_of(font, text).sum, unknown) << text;
  EXPECT_EQ(cover_of(font, "\xc0\x80").sum, 2 * unknown);       // overlong
  EXPECT_EQ(cover_of(font, "\xed\xa0\x80").sum, 3 * unknown);   // half of a pair
  EXPECT_EQ(cover_of(font, "\xf4\x90\x80\x80").sum, 4 * unknown);
}

TEST(PictureFont, WhatDoesNotFitEndsInAnEllipsis) {
  const Font font(20);
  const std::string text = "minkunet42 on straße.bin: 124,668 points";
  EXPECT_EQ(font.fitted(text, font.width(text)), text);
  for (int width = 0; width < font.width(text); ++width) {
    const std::string fitted = font.fitted(text, width);
    EXPECT_LE(font.width(fitted), width);
    if (fitted.empty()) continue;
    EXPECT_TRUE(fitted.ends_with("…")) << fitted;
    EXPECT_TRUE(text.starts_with(fitted.substr(0, fitted.size() - 3))) << fitted;
    EXPECT_EQ(fitted.find("\xc3\xe2"), std::string::npos) << "a letter cut in two: " << fitted;
  }
}

}   // namespace
}   // namespace pumice::cli
