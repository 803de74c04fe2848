// Characters from stb_truetype, each drawn once a size.
#include "picture_font.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include <pumice/core/error.hpp>

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb_truetype.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace pumice::cli {
namespace {

constexpr char32_t kUnknown = 0xFFFD;
constexpr char32_t kEllipsis = 0x2026;

/// The character that begins at `text[at]`, and `at` behind it; kUnknown and one byte on where
/// there is none.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at++);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? kUnknown : lead;
  const std::size_t more = lead >= 0xf0 && lead < 0xf5 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead >= 0xf5 || text.size() - at < more) return kUnknown;
  char32_t code = lead & (0x3fu >> more);
  for (std::size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return kUnknown;
    code = code << 6 | (byte(at + i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};   // of so many bytes; less is overlong
  if (code < kLeast[more - 1] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return kUnknown;
  at += more;
  return code;
}

}   // namespace

struct Font::Data {
  stbtt_fontinfo info{};
  float scale = 1;   // pixels a unit of the font
  std::map<int, Glyph> glyphs;

  int index(char32_t code) const {
    const int found = stbtt_FindGlyphIndex(&info, static_cast<int>(code));
    return found != 0 ? found : stbtt_FindGlyphIndex(&info, static_cast<int>(kUnknown));
  }
};

Font::Font(int size) : size_(size), data_(std::make_unique<Data>()) {
  PUMICE_ENSURES(size >= 1 && size <= 1024, "a font of ", size, " pixels");
  PUMICE_ENSURES(stbtt_InitFont(&data_->info, font_bytes().data(), 0) != 0,
                 "the font of the program cannot be read");
  data_->scale = stbtt_ScaleForMappingEmToPixels(&data_->info, static_cast<float>(size));
}
Font::~Font() = default;
Font::Font(Font&&) noexcept = default;
Font& Font::operator=(Font&&) noexcept = default;

std::vector<char32_t> Font::characters(std::string_view text) {
  std::vector<char32_t> result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();)
    result.push_back(next_character(text, at));
  return result;
}

double Font::advance(char32_t code) const {
  int units = 0, bearing = 0;
  stbtt_GetGlyphHMetrics(&data_->info, data_->index(code), &units, &bearing);
  return static_cast<double>(units) * static_cast<double>(data_->scale);
}

const Glyph& Font::glyph(char32_t code) const {
  const int index = data_->index(code);
  const auto [place, is_new] = data_->glyphs.try_emplace(index);
  Glyph& glyph = place->second;
  if (!is_new) return glyph;
  int right = 0, bottom = 0;
  stbtt_GetGlyphBitmapBox(&data_->info, index, data_->scale, data_->scale, &glyph.left, &glyph.top,
                          &right, &bottom);
  glyph.width = right - glyph.left;
  glyph.height = bottom - glyph.top;
  glyph.cover.resize(static_cast<std::size_t>(glyph.width) *
                     static_cast<std::size_t>(glyph.height));
  if (!glyph.cover.empty()) {
    stbtt_MakeGlyphBitmap(&data_->info, glyph.cover.data(), glyph.width, glyph.height, glyph.width,
                          data_->scale, data_->scale, index);
  }
  return glyph;
}

int Font::capital_height() const {
  int left = 0, bottom = 0, right = 0, top = 0;
  stbtt_GetGlyphBox(&data_->info, data_->index(U'H'), &left, &bottom, &right, &top);
  return static_cast<int>(std::lround(static_cast<float>(top) * data_->scale));
}

int Font::width(std::string_view text) const {
  double sum = 0;
  for (const char32_t code : characters(text))
    sum += advance(code);
  return static_cast<int>(std::ceil(sum));
}

std::string Font::fitted(std::string_view text, int width) const {
  if (this->width(text) <= width) return std::string(text);
  double left = width - advance(kEllipsis);
  if (left < 0) return {};
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size(); kept = at) {
    left -= advance(next_character(text, at));
    if (left < 0) break;
  }
  return std::string(text.substr(0, kept)) + "…";
}

}   // namespace pumice::cli
