// Files of the kinds that collections have, and what is said of those that are none.
#include <pumice/graphs/matrix_market.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/graphs/csr.hpp>

#include "support/data.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

MatrixLines read(std::string_view text) {
  return read_matrix_market_from(std::as_bytes(std::span(text)), "m.mtx");
}

template <class T> std::vector<T> list(const Tensor& tensor) {
  const auto values = tensor.span<T>();
  return {values.begin(), values.end()};
}

using Numbers = std::vector<std::int64_t>;
using Values = std::vector<double>;

TEST(MatrixMarket, ReadsRealNumbersCommentsAndBlankLines) {
  const MatrixLines lines = read(
      "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 3\n1 4 2.5\r\n"
      "% another\n3 1 -1e-3\n\n2 2 +7");
  EXPECT_EQ(lines.rows, 3);
  EXPECT_EQ(lines.columns, 4);
  EXPECT_EQ(list<std::int64_t>(lines.row), (Numbers{0, 2, 1}));
  EXPECT_EQ(list<std::int64_t>(lines.column), (Numbers{3, 0, 1}));
  EXPECT_EQ(list<double>(lines.value), (Values{2.5, -1e-3, 7}));
}

TEST(MatrixMarket, APatternHasOnesAndASymmetricOneBothTriangles) {
  const MatrixLines lines =
      read("%%MATRIXMARKET Matrix Coordinate PATTERN symmetric\n3 3 3\n2 1\n3 3\n1 3\n");
  EXPECT_EQ(list<double>(lines.value), (Values{1, 1, 1}));
  const MatrixEntries entries = entries_of(lines);
  EXPECT_EQ(list<std::int64_t>(entries.row), (Numbers{1, 0, 2, 0, 2}));
  EXPECT_EQ(list<std::int64_t>(entries.column), (Numbers{0, 1, 2, 2, 0}));
  EXPECT_EQ(list<std::int64_t>(entries.line), (Numbers{0, 0, 1, 2, 2}));
  EXPECT_EQ(list<double>(entries.sign), (Values{1, 1, 1, 1, 1}));
}

TEST(MatrixMarket, ASkewSymmetricOneIsNegativeBeyondTheDiagonal) {
  const MatrixEntries entries =
      entries_of(read("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n"));
  EXPECT_EQ(list<std::int64_t>(entries.row), (Numbers{1, 0}));
  EXPECT_EQ(list<double>(entries.sign), (Values{1, -1}));
}

TEST(MatrixMarket, ReadsAMatrixOfNothing) {
  const MatrixLines lines = read("%%MatrixMarket matrix coordinate real general\n0 0 0\n");
  EXPECT_EQ(lines.row.rows(), 0);
  EXPECT_EQ(entries_of(lines).row.rows(), 0);
}

TEST(MatrixMarket, SaysWhatIsWrongAndWhere) {
  const auto said = [](std::string_view text) { return message_of([&] { read(text); }); };
  const std::string head = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_EQ(said(""), "m.mtx: is empty");
  EXPECT_EQ(said("ply\n"),
            "m.mtx: does not begin with \"%%MatrixMarket matrix\", so it is not a .mtx file");
  EXPECT_EQ(
      said("%%MatrixMarket matrix array real general\n"),
      "m.mtx: holds a matrix as \"array\"; give one as \"coordinate\", a line for each entry");
  EXPECT_EQ(said("%%MatrixMarket matrix coordinate complex general\n"),
            "m.mtx: holds numbers that are \"complex\"; give real, integer or pattern");
  EXPECT_EQ(said("%%MatrixMarket matrix coordinate real hermitian\n"),
            "m.mtx: is \"hermitian\"; give general, symmetric or skew-symmetric");
  EXPECT_EQ(said(head),
            "m.mtx: ends where the line of sizes should be: it was cut off, or its line of sizes "
            "is wrong");
  EXPECT_EQ(said(head + "3 3\n"),
            "m.mtx, line 2: 2 words where rows, columns and the number of entries are needed");
  EXPECT_EQ(said(head + "3 -3 1\n"),
            "m.mtx, line 2: columns \"-3\": a whole number from 0 to 2147483647 is needed");
  EXPECT_EQ(said(head + "3 3 2\n1 1 1\n"),
            "m.mtx: ends where an entry should be: it was cut off, or its line of sizes is wrong");
  EXPECT_EQ(said(head + "3 3 1\n1 1 1\n% a remark\n2 2 2\n"),
            "m.mtx, line 5: a line behind the 1 entries that the line of sizes announces; correct "
            "that number");
  EXPECT_EQ(said(head + "3 3 1\n4 1 1\n"),
            "m.mtx, line 3: row \"4\": a whole number from 1 to 3 is needed");
  EXPECT_EQ(said(head + "3 3 1\n1 0 1\n"),
            "m.mtx, line 3: column \"0\": a whole number from 1 to 3 is needed");
  EXPECT_EQ(said(head + "3 3 1\n1 1 x\n"), "m.mtx, line 3: value \"x\" is no number");
  EXPECT_EQ(said(head + "3 3 1\n1 1\n"), "m.mtx, line 3: 2 words where an entry has 3");
  EXPECT_EQ(said(head + "3 3 2000000000\n1 1 1\n"),
            "m.mtx, line 2: 2000000000 entries are more than a file of 67 bytes can hold");
  EXPECT_EQ(said("%%MatrixMarket matrix coordinate real symmetric\n3 2 0\n"),
            "m.mtx, line 2: 3 rows and 2 columns of a symmetric matrix; they must be as many");
  EXPECT_NE(said("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n")
                .find("on the diagonal"),
            std::string::npos);
}

TEST(MatrixMarket, ReadsPublishedMatrices) {
  struct Known {
    const char* name;
    std::int64_t rows, entries;
  };
  for (const Known& known : {Known{"matrices/snap_ca-CondMat.mtx", 23'133, 186'936},
                             Known{"matrices/lagraph_bcsstk13.mtx", 2'003, 83'883}}) {
    PUMICE_NEEDS_DATA(path, known.name);
    const MatrixLines lines = read_matrix_market(path);
    const MatrixEntries entries = entries_of(lines);
    EXPECT_EQ(lines.rows, known.rows);
    EXPECT_EQ(entries.row.rows(), known.entries);
    const Csr csr(lines.rows, lines.columns, entries.row, entries.column);
    check_pattern(csr.view(), known.name);
  }
}

}   // namespace
}   // namespace pumice::test
