// .ply files: text and both byte orders, other elements around the vertices, and files that lie.
#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud read_ply_bytes(const std::string& bytes) {
  return read_points_from(as_bytes(bytes), PointFormat::ply, {}, "scan.ply");
}
std::string complaint(const std::string& bytes) {
  return message_of([&] { read_ply_bytes(bytes); });
}

const std::string kStart = "ply\nformat binary_little_endian 1.0\n";
const std::string kXyz = "property float x\nproperty float y\nproperty float z\n";

TEST(PlyScan, ComesBackFromTextAndBothByteOrdersAtAnySize) {
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    for (const PlyStorage storage : {PlyStorage::ascii, PlyStorage::little, PlyStorage::big}) {
      expect_points(read_ply_bytes(ply_bytes(rows, storage)), rows);
    }
  }
}

TEST(PlyScan, MayHaveWindowsLineEnds) {
  expect_points(read_ply_bytes("ply\r\nformat ascii 1.0\r\nelement vertex 1\r\nproperty float x\r\n"
                               "property float y\r\nproperty float z\r\nend_header\r\n1 2 3\r\n"),
                {{1, 2, 3, 0}}, false);
}

TEST(PlyScan, ThatIsCutShortAnywhereIsRefused) {
  const std::vector<Row> rows = scan_rows(20);
  for (const PlyStorage storage : {PlyStorage::ascii, PlyStorage::little, PlyStorage::big}) {
    const std::string whole = ply_bytes(rows, storage);
    // The face behind the vertices is not looked at, nor can the last digits of text be missed.
    for (std::size_t size = 0; size + 24 < whole.size(); ++size) {
      EXPECT_NE(complaint(whole.substr(0, size)), "(nothing was thrown)") << size;
    }
  }
}

TEST(PlyScan, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(complaint("solid cube"),
            "scan.ply: does not begin with \"ply\", so it is not a .ply file");
  EXPECT_EQ(complaint("ply\nformat binary_middle_endian 1.0\n"),
            "scan.ply: format \"binary_middle_endian\" is none of ascii, binary_little_endian and "
            "binary_big_endian");
  EXPECT_EQ(complaint(kStart + "element vertex 1\n" + kXyz),
            "scan.ply: has no end_header line; it is truncated");
  EXPECT_EQ(complaint(kStart + "element vertex -1\n"),
            "scan.ply: element vertex has count \"-1\"; expected a whole number below 2^31");
  EXPECT_EQ(complaint(kStart + "element face 0\nend_header\n"),
            "scan.ply: has no element vertex, so it has no points");
  EXPECT_EQ(complaint(kStart + "element vertex 1\nproperty quad x\n"),
            "scan.ply: property type \"quad\" is none of char, uchar, short, ushort, int, uint, "
            "float and double");
  EXPECT_EQ(complaint(kStart + "element vertex 1\nproperty float x\nproperty float y\nend_header\n"
                               "12345678"),
            "scan.ply: has no field named z, so its points have no position");
  EXPECT_EQ(complaint(kStart + "element vertex 2147483647\n" + kXyz + "end_header\n12345678"),
            "scan.ply: element vertex announces 2147483647 rows of 12 bytes, but only 8 bytes "
            "follow; it is truncated");
  EXPECT_EQ(complaint(kStart + "element vertex 1\n" + kXyz + "property float X\nend_header\n"),
            "scan.ply: element vertex announces 1 rows of 16 bytes, but only 0 bytes follow; it is "
            "truncated");
  EXPECT_EQ(complaint(kStart + "element vertex 0\n" + kXyz + "property float X\nend_header\n"),
            "scan.ply: has two properties for what X means; keep one of them");
  EXPECT_EQ(complaint("ply\nformat ascii 1.0\nelement vertex 1\n" + kXyz + "end_header\n1 nan 3\n"),
            "scan.ply: point 0 is (1, nan, 3), which is not finite; remove such points first");
}

}   // namespace
}   // namespace pumice
