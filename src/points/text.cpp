// Tables of numbers in ascii scans.
#include "points/text.hpp"

namespace pumice::detail {

TextTable read_table(std::string_view text, std::int64_t rows, std::int64_t width,
                     std::string_view name) {
  // A number takes a digit and a separator, so the text bounds what a count may ask for.
  const std::optional<std::int64_t> values = product(rows, width);
  PUMICE_EXPECTS(values && *values <= (static_cast<std::int64_t>(text.size()) + 1) / 2, name,
                 ": announces ", rows, " points of ", width, " values, but only ", text.size(),
                 " bytes follow; it is truncated");
  TextTable table{Buffer<double>(*values)};
  Lines lines(text);
  std::string_view line;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::string_view word;
    do {
      PUMICE_EXPECTS(lines.next(line), name, ": announces ", rows, " points, but ends after ", row,
                     "; it is truncated");
      word = next_word(line);
    } while (word.empty());
    for (std::int64_t column = 0; column < width; ++column, word = next_word(line)) {
      PUMICE_EXPECTS(!word.empty(), name, ": point ", row, " has ", column, " values instead of ",
                     width);
      const std::optional<double> value = parse_number<double>(word);
      PUMICE_EXPECTS(value.has_value(), name, ": value ", column, " of point ", row, " is \"",
                     excerpt(word), "\", which is not a number");
      table.values[row * width + column] = *value;
    }
    PUMICE_EXPECTS(word.empty(), name, ": point ", row, " has more than ", width, " values");
  }
  return table;
}

}   // namespace pumice::detail
