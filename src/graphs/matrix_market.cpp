// A header of one line, comments, a line of sizes, then a line for each entry.
#include <pumice/graphs/matrix_market.hpp>

#include <limits>
#include <string>
#include <vector>

#include <pumice/core/error.hpp>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "points/text.hpp"

namespace pumice {
namespace {

using detail::excerpt;
using detail::lower;
using detail::parse_number;

struct Header {
  bool has_values = true;
  MatrixSymmetry symmetry = MatrixSymmetry::general;
};

Header parse_header(std::string_view line, std::string_view name) {
  const std::vector<std::string_view> words = detail::words(line);
  PUMICE_EXPECTS(
      words.size() == 5 && lower(words[0]) == "%%matrixmarket" && lower(words[1]) == "matrix", name,
      ": does not begin with \"%%MatrixMarket matrix\", so it is not a .mtx file");
  PUMICE_EXPECTS(lower(words[2]) == "coordinate", name, ": holds a matrix as \"", excerpt(words[2]),
                 "\"; give one as \"coordinate\", a line for each entry");
  const std::string field = lower(words[3]);
  PUMICE_EXPECTS(field == "real" || field == "integer" || field == "pattern", name,
                 ": holds numbers that are \"", excerpt(words[3]),
                 "\"; give real, integer or pattern");
  const std::string symmetry = lower(words[4]);
  PUMICE_EXPECTS(symmetry == "general" || symmetry == "symmetric" || symmetry == "skew-symmetric",
                 name, ": is \"", excerpt(words[4]),
                 "\"; give general, symmetric or skew-symmetric");
  return {.has_values = field != "pattern",
          .symmetry = symmetry == "general"     ? MatrixSymmetry::general
                      : symmetry == "symmetric" ? MatrixSymmetry::symmetric
                                                : MatrixSymmetry::skew_symmetric};
}

/// The next line that is neither blank nor a comment.
class DataLines {
 public:
  DataLines(std::string_view text, std::string_view name) : lines_(text), name_(name) {}

  std::string_view header() {
    std::string_view line;
    PUMICE_EXPECTS(lines_.next(line), name_, ": is empty");
    ++number_;
    return line;
  }
  std::vector<std::string_view> next(const char* what) {
    std::vector<std::string_view> words = next_or_none();
    if (!words.empty()) return words;
    detail::raise_user(name_, ": ends where ", what,
                       " should be: it was cut off, or its line of sizes "
                       "is wrong");
  }
  /// UserError where there is one more.
  void expect_end(std::int64_t entries) {
    PUMICE_EXPECTS(next_or_none().empty(), here(), ": a line behind the ", entries,
                   " entries that the line of sizes announces; correct that number");
  }
  /// "matrix.mtx, line 7".
  std::string here() const { return std::string(name_) + ", line " + std::to_string(number_); }

 private:
  std::vector<std::string_view> next_or_none() {
    std::string_view line;
    while (lines_.next(line)) {
      ++number_;
      std::vector<std::string_view> words = detail::words(line);
      if (!words.empty() && !words[0].starts_with('%')) return words;
    }
    return {};
  }

  detail::Lines lines_;
  std::string_view name_;
  std::int64_t number_ = 0;
};

std::int64_t parse_size(std::string_view word, const DataLines& lines, const char* what) {
  const auto size = parse_number<std::int64_t>(word);
  PUMICE_EXPECTS(size && *size >= 0 && *size <= std::numeric_limits<std::int32_t>::max(),
                 lines.here(), ": ", what, " \"", excerpt(word),
                 "\": a whole number from 0 to 2147483647 is needed");
  return *size;
}

/// From 0 on, of what the file numbers from 1 on.
std::int64_t parse_place(std::string_view word, std::int64_t limit, const DataLines& lines,
                         const char* what) {
  const auto place = parse_number<std::int64_t>(word);
  PUMICE_EXPECTS(place && *place >= 1 && *place <= limit, lines.here(), ": ", what, " \"",
                 excerpt(word), "\": a whole number from 1 to ", limit, " is needed");
  return *place - 1;
}

}   // namespace

MatrixLines read_matrix_market_from(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text = detail::as_text(bytes);
  DataLines lines(text, name);
  const Header header = parse_header(lines.header(), name);
  const std::vector<std::string_view> sizes = lines.next("the line of sizes");
  PUMICE_EXPECTS(sizes.size() == 3, lines.here(), ": ", sizes.size(),
                 " words where rows, columns and the number of entries are needed");
  MatrixLines result{.rows = parse_size(sizes[0], lines, "rows"),
                     .columns = parse_size(sizes[1], lines, "columns"),
                     .symmetry = header.symmetry,
                     .row = {},
                     .column = {},
                     .value = {}};
  PUMICE_EXPECTS(header.symmetry == MatrixSymmetry::general || result.rows == result.columns,
                 lines.here(), ": ", result.rows, " rows and ", result.columns,
                 " columns of a symmetric matrix; they must be as many");
  const std::int64_t entries = parse_size(sizes[2], lines, "number of entries");
  // "1 1" and a line feed: what says more is refused before room is made for it.
  PUMICE_EXPECTS(entries <= static_cast<std::int64_t>(text.size() / 4) + 1, lines.here(), ": ",
                 entries, " entries are more than a file of ", text.size(), " bytes can hold");
  result.row = Tensor({entries}, DType::i64);
  result.column = Tensor({entries}, DType::i64);
  result.value = Tensor({entries}, DType::f64);
  const std::size_t words_of_entry = header.has_values ? 3 : 2;
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::vector<std::string_view> words = lines.next("an entry");
    PUMICE_EXPECTS(words.size() == words_of_entry, lines.here(), ": ", words.size(),
                   " words where an entry has ", words_of_entry);
    const std::int64_t row = parse_place(words[0], result.rows, lines, "row");
    const std::int64_t column = parse_place(words[1], result.columns, lines, "column");
    PUMICE_EXPECTS(header.symmetry != MatrixSymmetry::skew_symmetric || row != column, lines.here(),
                   ": an entry on the diagonal of a skew-symmetric matrix, which is 0 there");
    const auto value = header.has_values ? parse_number<double>(words[2]) : 1.0;
    PUMICE_EXPECTS(value, lines.here(), ": value \"", excerpt(words[2]), "\" is no number");
    result.row.data<std::int64_t>()[e] = row;
    result.column.data<std::int64_t>()[e] = column;
    result.value.data<double>()[e] = *value;
  }
  lines.expect_end(entries);
  return result;
}

MatrixLines read_matrix_market(const std::filesystem::path& path) {
  const Buffer<std::byte> bytes = detail::read_file(path);
  return read_matrix_market_from(bytes.span(), printable_path(path));
}

MatrixEntries entries_of(const MatrixLines& lines) {
  const std::int64_t count = lines.row.rows();
  const std::int64_t* row = lines.row.data<std::int64_t>();
  const std::int64_t* column = lines.column.data<std::int64_t>();
  const bool mirrors = lines.symmetry != MatrixSymmetry::general;
  std::int64_t entries = count;
  for (std::int64_t l = 0; mirrors && l < count; ++l)
    entries += row[l] != column[l] ? 1 : 0;
  MatrixEntries result{Tensor({entries}, DType::i64), Tensor({entries}, DType::i64),
                       Tensor({entries}, DType::i64), Tensor({entries}, DType::f64)};
  std::int64_t next = 0;
  const auto add = [&](std::int64_t r, std::int64_t c, std::int64_t line, double sign) {
    result.row.data<std::int64_t>()[next] = r;
    result.column.data<std::int64_t>()[next] = c;
    result.line.data<std::int64_t>()[next] = line;
    result.sign.data<double>()[next] = sign;
    ++next;
  };
  const double mirrored = lines.symmetry == MatrixSymmetry::skew_symmetric ? -1 : 1;
  for (std::int64_t l = 0; l < count; ++l) {
    add(row[l], column[l], l, 1);
    if (mirrors && row[l] != column[l]) add(column[l], row[l], l, mirrored);
  }
  return result;
}

}   // namespace pumice
