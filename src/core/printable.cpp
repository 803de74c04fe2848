// Decodes UTF-8 strictly; what does not decode is shown byte by byte.
#include "core/printable.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace pumice {
namespace {

constexpr std::size_t kLongestPath = 240;       // a name has at most 255 bytes, a path 4,096
constexpr std::size_t kLongestMessage = 4000;   // one or two such paths and a sentence

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;   // 0: `text` does not begin with a character of UTF-8
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};   // by bytes
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

/// Characters that a terminal obeys (C0, DEL, C1), and those that hide or turn what stands around
/// them: the soft hyphen, marks of direction, separators of lines, joiners, tags.
bool is_obeyed(std::uint32_t code) {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  constexpr std::array kRanges{
      Range{0x00, 0x1f},     Range{0x7f, 0x9f},       Range{0xad, 0xad},     Range{0x61c, 0x61c},
      Range{0x200b, 0x200f}, Range{0x2028, 0x202e},   Range{0x2060, 0x206f}, Range{0xfeff, 0xfeff},
      Range{0xfff9, 0xfffb}, Range{0xe0000, 0xe0fff},
  };
  for (const Range& range : kRanges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

std::string escaped(char kind, std::uint32_t number, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text{'\\', kind};
  for (int digit = digits - 1; digit >= 0; --digit)
    text += kDigits[number >> (4 * digit) & 15u];
  return text;
}

std::string escaped(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code < 0x100) return escaped('x', code, 2);
  return code < 0x10000 ? escaped('u', code, 4) : escaped('U', code, 8);
}

/// The characters of `text` as they are shown, and where each begins.
struct Shown {
  std::string text;
  std::vector<std::size_t> begins;
};

/// Stops after `most` characters.
Shown shown(std::string_view text, Newlines newlines, std::size_t most) {
  Shown result;
  while (!text.empty() && result.begins.size() < most) {
    const Character character = first_character(text);
    result.begins.push_back(result.text.size());
    if (character.bytes == 0) {
      result.text += escaped('x', static_cast<unsigned char>(text[0]), 2);
      text.remove_prefix(1);
      continue;
    }
    const bool is_kept = character.code == '\n' && newlines == Newlines::kept;
    if (is_obeyed(character.code) && !is_kept)
      result.text += escaped(character.code);
    else
      result.text += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return result;
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::string without_middle(const std::string_view text, Newlines newlines, std::size_t most) {
  Shown whole = shown(text, newlines, kAll);
  const std::size_t count = whole.begins.size();
  if (count <= most) return std::move(whole.text);
  const std::size_t head = most / 2;
  return whole.text.substr(0, whole.begins[head]) + "…" +
         whole.text.substr(whole.begins[count - (most - head - 1)]);
}

}   // namespace

std::string printable(std::string_view text, std::size_t most) {
  Shown head = shown(text, Newlines::escaped, most + 1);
  if (head.begins.size() <= most) return std::move(head.text);
  return head.text.substr(0, head.begins[most]) + "…";
}

std::string printable_path(const std::filesystem::path& path) {
  return without_middle(path.native(), Newlines::escaped, kLongestPath);
}

std::string printable_message(std::string_view text, Newlines newlines) {
  return without_middle(text, newlines, kLongestMessage);
}

}   // namespace pumice
