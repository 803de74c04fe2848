// .npy arrays: all float widths, byte orders, axis orders and header versions, and files that lie.
#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud read_npy_bytes(const std::string& bytes) {
  return read_points_from(as_bytes(bytes), PointFormat::npy, {}, "scan.npy");
}
std::string complaint(const std::string& bytes) {
  return message_of([&] { read_npy_bytes(bytes); });
}

/// Version 1 with any dictionary and any elements.
std::string npy_of(const std::string& dictionary, const std::string& elements = {}) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  append(bytes, static_cast<std::uint16_t>(dictionary.size()));
  return bytes + dictionary + elements;
}

TEST(NpyScan, ComesBackWhateverItsStyleAtAnySize) {
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    for (const bool fortran : {false, true}) {
      for (const int version : {1, 2, 3}) {
        expect_points(read_npy_bytes(npy_bytes<float>(rows, 4, {"<f4", fortran, version})), rows);
      }
      expect_points(read_npy_bytes(npy_bytes<float>(rows, 4, {">f4", fortran, 1})), rows);
      expect_points(read_npy_bytes(npy_bytes<double>(rows, 5, {"<f8", fortran, 1})), rows);
      expect_points(read_npy_bytes(npy_bytes<double>(rows, 3, {">f8", fortran, 1})), rows, false);
    }
  }
}

TEST(NpyScan, OfHalfFloatsIsWidened) {
  std::vector<Row> rows = scan_rows(33);
  const std::string bytes = npy_bytes<Half>(rows, 4, {"<f2", false, 1});
  for (Row& row : rows) {
    for (float& value : row)
      value = to_float(to_half(value));
  }
  expect_points(read_npy_bytes(bytes), rows);
}

TEST(NpyScan, MayWriteItsHeaderInAnyOrder) {
  std::string elements;
  for (const float value : {1.0f, 2.0f, 3.0f})
    append(elements, value);
  expect_points(read_npy_bytes(npy_of(
                    "{\"shape\":(1,3),\"fortran_order\":False ,\"descr\":\"<f4\"}", elements)),
                {{1, 2, 3, 0}}, false);
}

TEST(NpyScan, WhosePointsAreColumnsIsRefusedInEitherOrderOfAxes) {
  for (const bool fortran : {false, true}) {
    for (const std::int64_t rows : {1, 3, 4, 5, 15}) {
      const std::string bytes = npy_bytes<float>(scan_rows(rows), 1000, {"<f4", fortran, 1});
      EXPECT_EQ(complaint(bytes), "scan.npy: has shape [" + std::to_string(rows) +
                                      ", 1000]: give [points, columns]; it looks transposed, so "
                                      "save array.T");
    }
    // A few points of many columns, and many points, are what they say.
    for (const auto& [rows, columns] : {std::pair{4, 64}, std::pair{16, 1000}}) {
      EXPECT_EQ(read_npy_bytes(npy_bytes<float>(scan_rows(rows), static_cast<std::size_t>(columns),
                                                {"<f4", fortran, 1}))
                    .size(),
                rows);
    }
  }
}

TEST(NpyScan, ThatIsCutShortAnywhereIsRefused) {
  const std::string whole = npy_bytes<float>(scan_rows(20), 4);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(complaint(whole.substr(0, size)), "(nothing was thrown)") << size;
  }
}

TEST(NpyScan, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(complaint("GIF89a, a picture"),
            "scan.npy: does not begin with \\x93NUMPY, so it is not a .npy array");
  EXPECT_EQ(complaint(npy_of("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3), }")),
            "scan.npy: holds <i4; points are f2, f4 or f8");
  EXPECT_EQ(complaint(npy_of("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }")),
            "scan.npy: its header is damaged, or its elements are records; points need plain "
            "numbers");
  EXPECT_EQ(complaint(npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }")),
            "scan.npy: has shape [3, 2]; points are [P, 3] or [P, 4 and more]");
  EXPECT_EQ(
      complaint(npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "1234")),
      "scan.npy: its shape needs 24 bytes, but 4 follow; it is truncated or damaged");
  EXPECT_EQ(complaint(npy_of("{'descr': '<f4', 'fortran_order': False, "
                             "'shape': (4611686018427387904, 3), }")),
            "scan.npy: its shape has more than 2^63 bytes");
  EXPECT_EQ(complaint(npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }")),
            "scan.npy: its shape is not made of whole numbers");
  EXPECT_EQ(complaint(npy_of("{'descr': '<f4', 'shape': (2, 3), }")),
            "scan.npy: its header lacks descr, fortran_order or shape");
}

}   // namespace
}   // namespace pumice
