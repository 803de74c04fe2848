// .pcd files: all three kinds of data, points that are not finite, and files that lie.
#include <limits>

#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud read_pcd_bytes(const std::string& bytes) {
  return read_points_from(as_bytes(bytes), PointFormat::pcd, {}, "scan.pcd");
}
std::string complaint(const std::string& bytes) {
  return message_of([&] { read_pcd_bytes(bytes); });
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(PcdScan, ComesBackFromAllKindsOfDataAtAnySize) {
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    expect_points(read_pcd_bytes(pcd_ascii(rows)), rows);
    expect_points(read_pcd_bytes(pcd_binary(rows)), rows);
    expect_points(read_pcd_bytes(pcd_compressed(rows)), rows);
  }
}

TEST(PcdScan, OfRepeatedPointsCompressesToCopiesThatOverlap) {
  const std::vector<Row> rows(500, Row{0, 0, 0, 0});
  const std::string bytes = pcd_compressed(rows);
  ASSERT_LT(bytes.size(), 500u);
  expect_points(read_pcd_bytes(bytes), rows);
}

TEST(PcdScan, DropsPointsThatAreNotFiniteAndCountsThem) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<Row> rows{
      {nan, nan, nan, 0}, {1, 2, 3, 4}, {1, -infinity, 3, 4}, {5, 6, 7, 8}, {1, 2, 3, nan}};
  for (const std::string& bytes : {pcd_ascii(rows), pcd_binary(rows), pcd_compressed(rows)}) {
    const PointCloud cloud = read_pcd_bytes(bytes);
    EXPECT_EQ(cloud.dropped_points, 3);
    expect_points(cloud, {{1, 2, 3, 4}, {5, 6, 7, 8}});
  }
}

TEST(PcdScan, MayHaveFieldsOfAnyTypeInAnyOrder) {
  std::string bytes =
      "VERSION .7\nFIELDS label _ z ring y x t\nSIZE 4 1 8 2 4 4 4\nTYPE U U F U F F U\n"
      "COUNT 1 3 1 1 1 1 1\nWIDTH 2\nHEIGHT 1\nDATA binary\n";
  for (int i = 0; i < 2; ++i) {
    append(bytes, static_cast<std::uint32_t>(40 + i));
    bytes += "abc";
    append(bytes, -1.5 + i);
    append(bytes, static_cast<std::uint16_t>(63));
    append(bytes, 2.0f);
    append(bytes, 1.0f);
    append(bytes, std::uint32_t{0});
  }
  const PointCloud cloud = read_pcd_bytes(bytes);
  expect_points(cloud, {{1, 2, -1.5f, 0}, {1, 2, -0.5f, 0}}, false);
  EXPECT_EQ(cloud.labels.span<std::int32_t>()[1], 41);
  EXPECT_EQ(cloud.ring.span<std::int32_t>()[0], 63);
  EXPECT_FALSE(cloud.time.defined());
}

TEST(PcdScan, ThatIsCutShortAnywhereIsRefused) {
  const std::vector<Row> rows = scan_rows(20);
  for (const std::string& whole : {pcd_ascii(rows), pcd_binary(rows), pcd_compressed(rows)}) {
    // The last digit or line end of a text may go without anyone being able to tell.
    for (std::size_t size = 0; size + 12 < whole.size(); ++size) {
      EXPECT_NE(complaint(whole.substr(0, size)), "(nothing was thrown)") << size;
    }
  }
}

TEST(PcdScan, SaysWhatIsWrongWithIt) {
  const std::vector<Row> rows = scan_rows(3);
  const std::string ascii = pcd_ascii(rows);
  const std::string binary = pcd_binary(rows);
  EXPECT_EQ(
      complaint("\x7f"
                "ELF\x02\x01\x01"),
      "scan.pcd: header line \"\\x7fELF\\x02\\x01\\x01\" is none of a .pcd file, so it is not one");
  EXPECT_EQ(complaint(""), "scan.pcd: has no DATA line; it is not a .pcd file or is truncated");
  EXPECT_EQ(complaint(binary.substr(0, binary.size() - 1)),
            "scan.pcd: announces 3 points of 16 bytes, but only 47 bytes follow; it is truncated");
  EXPECT_EQ(complaint(replaced(binary, "WIDTH 3", "WIDTH -3")),
            "scan.pcd: WIDTH = \"-3\"; expected a whole number from 0 to 2147483647");
  EXPECT_EQ(complaint(replaced(binary, "POINTS 3", "POINTS 4")),
            "scan.pcd: POINTS is 4, but WIDTH x HEIGHT is 3");
  EXPECT_EQ(complaint(replaced(binary, "FIELDS x", "FIELDS w")),
            "scan.pcd: has no field named x, so its points have no position");
  EXPECT_EQ(complaint(replaced(binary, "SIZE 4", "SIZE 3")),
            "scan.pcd: TYPE F of SIZE 3 is no field type; there are F4 F8, I1 I2 I4 I8 and U1 U2 "
            "U4 U8");
  EXPECT_EQ(complaint(replaced(binary, "DATA binary", "DATA ternary")),
            "scan.pcd: DATA is \"ternary\"; expected ascii, binary or binary_compressed");
  EXPECT_EQ(complaint(replaced(ascii, "DATA ascii\n", "DATA ascii\n1 2 abc 4\n")),
            "scan.pcd: value 2 of point 0 is \"abc\", which is not a number");
  EXPECT_EQ(complaint(replaced(ascii, "DATA ascii\n", "DATA ascii\n1 2 3\n")),
            "scan.pcd: point 0 has 3 values instead of 4");
}

TEST(PcdScan, ThatAnnouncesTooMuchAllocatesNothing) {
  const std::string binary = pcd_binary(scan_rows(3));
  const std::string huge =
      replaced(replaced(binary, "WIDTH 3", "WIDTH 2147483647"), "POINTS 3", "POINTS 2147483647");
  EXPECT_EQ(complaint(huge),
            "scan.pcd: announces 2147483647 points of 16 bytes, but only 48 bytes follow; it is "
            "truncated");
  EXPECT_EQ(complaint(replaced(huge, "DATA binary", "DATA ascii")),
            "scan.pcd: announces 2147483647 points of 4 values, but only 48 bytes follow; it is "
            "truncated");
  std::string bomb = pcd_header(100000000, "binary_compressed");
  append(bomb, std::uint32_t{10});
  append(bomb, std::uint32_t{1600000000});
  EXPECT_EQ(complaint(bomb + std::string(10, '\xff')),
            "scan.pcd: 10 compressed bytes cannot hold 1600000000; it is damaged");
}

}   // namespace
}   // namespace pumice
