// Text at the head of scan files and in ascii ones: lines, words and numbers, never past the end.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <pumice/core/buffer.hpp>

#include "core/printable.hpp"
#include "points/formats.hpp"

namespace pumice::detail {

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Walks through the lines of a text; a carriage return before a line feed is not part of a line.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  bool next(std::string_view& line) {
    if (position_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    line = text_.substr(position_, end - position_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    position_ = std::min(end + 1, text_.size());
    return true;
  }
  /// Where the next line begins.
  std::size_t position() const { return position_; }

 private:
  std::string_view text_;
  std::size_t position_ = 0;
};

/// Cuts the first word off `rest`; empty when there is none.
inline std::string_view next_word(std::string_view& rest) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  const std::size_t begin = rest.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    rest = {};
    return {};
  }
  const std::size_t end = std::min(rest.find_first_of(kBlank, begin), rest.size());
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

inline std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> result;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    result.push_back(word);
  }
  return result;
}

/// Of ASCII letters, whatever the locale.
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// The whole of `word` as a number; nothing when it is not one or does not fit.
template <class T> std::optional<T> parse_number(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Of what a file says, for an error message.
inline std::string excerpt(std::string_view text) {
  return printable(text, 40);
}

/// Rows of `width` numbers, one row a line, blank lines left out.
struct TextTable {
  Buffer<double> values;   // [rows, width]
};
TextTable read_table(std::string_view text, std::int64_t rows, std::int64_t width,
                     std::string_view name);

/// a · b, or nothing when it does not fit.
inline std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

}   // namespace pumice::detail
