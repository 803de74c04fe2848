// The font of captions and legends: DejaVu Sans, Latin, Greek and Cyrillic.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pumice::cli {

/// The shape of a character: how much of each pixel it covers, 0 to 255, row by row from the top.
struct Glyph {
  int left = 0;   // of the shape, from the pen
  int top = 0;    // of the shape, from the baseline; negative above it
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> cover;
};

/// At one size. Text is UTF-8; characters that the font lacks, control characters and bytes that
/// are no UTF-8 look like U+FFFD.
class Font {
 public:
  /// `size` in pixels: an em, of which capitals are 73 hundredths high.
  explicit Font(int size);
  ~Font();
  Font(Font&&) noexcept;
  Font& operator=(Font&&) noexcept;

  int size() const { return size_; }
  /// From the top of a capital to the baseline, in pixels.
  int capital_height() const;
  /// From the pen before the first character to the pen behind the last, rounded up.
  int width(std::string_view text) const;
  /// `text` where it fits into `width` pixels, else as much of it as does with "…" behind.
  std::string fitted(std::string_view text, int width) const;
  /// Hands each character to `draw`, with where the pen is, in whole pixels.
  template <class Draw> void set(std::string_view text, const Draw& draw) const {
    double pen = 0;
    for (const char32_t code : characters(text)) {
      draw(static_cast<int>(pen + 0.5), glyph(code));
      pen += advance(code);
    }
  }

 private:
  struct Data;
  static std::vector<char32_t> characters(std::string_view text);
  double advance(char32_t code) const;
  const Glyph& glyph(char32_t code) const;

  int size_;
  std::unique_ptr<Data> data_;
};

/// The file cli/font/DejaVuSans.ttf, embedded when the program is built.
std::span<const unsigned char> font_bytes();

}   // namespace pumice::cli
