// A 5x7 bitmap font of the printable ASCII characters.
#pragma once

namespace pumice::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 7;

/// Whether the pixel `x` from the left and `y` from the top of a character is set; characters that
/// the font lacks look like '?'.
bool glyph_pixel(char character, int x, int y);

}   // namespace pumice::cli
