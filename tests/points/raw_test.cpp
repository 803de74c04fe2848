// Raw scans: the layout is believed only when sizes, values and order bear it out.
#include <limits>

#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "points/formats.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud read_raw_bytes(const std::string& bytes, const std::string& layout = {},
                          std::string_view name = "scan.bin") {
  return read_points_from(as_bytes(bytes), PointFormat::raw, {.layout = layout}, name);
}

TEST(RawScan, ComesBackAtAnySize) {
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    expect_points(read_raw_bytes(raw_bytes<float>(rows, 4)), rows);
    expect_points(read_raw_bytes(raw_bytes<double>(rows, 4), "f64x4"), rows);
    expect_points(read_raw_bytes(raw_bytes<float>(rows, 7), "f32x7"), rows);
    expect_points(read_raw_bytes(raw_bytes<float>(rows, 3), "f32x3"), rows, false);
  }
}

TEST(RawScan, OfHalfFloatsIsWidened) {
  std::vector<Row> rows = scan_rows(33);
  const std::string bytes = raw_bytes<Half>(rows, 5);
  for (Row& row : rows) {
    for (float& value : row)
      value = to_float(to_half(value));
  }
  expect_points(read_raw_bytes(bytes, "f16x5"), rows);
}

TEST(RawScan, HasTimeInItsFifthColumnAndTheRingInAPcdBin) {
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    for (const float value : {1.0f, 2.0f, 3.0f, 0.5f, static_cast<float>(i)})
      append(bytes, value);
  }
  const PointCloud timed = read_raw_bytes(bytes, "f32x5");
  EXPECT_EQ(timed.time.span<float>()[2], 2.0f);
  EXPECT_FALSE(timed.ring.defined());
  const PointCloud ringed = read_raw_bytes(bytes, {}, "sweep.pcd.bin");
  EXPECT_EQ(ringed.ring.span<std::int32_t>()[2], 2);
  EXPECT_FALSE(ringed.time.defined());
}

TEST(RawScan, MayNameItsLayout) {
  const std::vector<Row> rows = scan_rows(100);
  expect_points(read_raw_bytes(raw_bytes<double>(rows, 4), {}, "/data/run_7/ouster_f64x4.bin"),
                rows);
  EXPECT_EQ(detail::layout_of_name("dir_f16x5/scan.bin"), std::nullopt);
  EXPECT_EQ(detail::layout_of_name("scan_f16x5.bin"), (detail::RawLayout{detail::Scalar::f16, 5}));
  EXPECT_EQ(detail::layout_of_name("scan_000001.bin"), std::nullopt);
}

TEST(RawScan, OfAnotherSizeIsRefusedWithTheLikelyLayout) {
  const std::string bytes = raw_bytes<Half>(scan_rows(1001), 5);
  EXPECT_EQ(message_of([&] { read_raw_bytes(bytes); }),
            "scan.bin: 10010 bytes are not a whole number of f32x4 points of 16 bytes; it looks "
            "like f16x5: give layout = f16x5, in the program --layout f16x5");
}

TEST(RawScan, ThatWasCutOffIsNotReadAsAnotherLayout) {
  const std::string whole = raw_bytes<float>(scan_rows(1001), 4);
  for (const std::size_t more : {4u, 8u, 12u}) {
    EXPECT_EQ(message_of([&] { read_raw_bytes(whole.substr(0, 16000 + more)); }),
              "scan.bin: " + std::to_string(16000 + more) + " bytes are 1000 points of f32x4 and " +
                  std::to_string(more) + " bytes more; it looks cut off: copy it again");
  }
  EXPECT_NE(message_of([&] { read_raw_bytes(whole.substr(0, 1000)); }).find("it looks cut off"),
            std::string::npos);
  EXPECT_TRUE(message_of([&] {
                read_raw_bytes("hello\n");
              }).ends_with("this may not be a point cloud or may be truncated"));
}

TEST(RawScan, OfHalfFloatsAndFloatsAreToldApartBothWays) {
  const std::string halves = raw_bytes<Half>(scan_rows(1000), 4);
  EXPECT_EQ(read_raw_bytes(halves, "f16x4").size(), 1000);
  EXPECT_TRUE(
      message_of([&] {
        read_raw_bytes(halves, "f32x4");
      }).ends_with("; it looks like f16x4: give layout = f16x4, in the program --layout f16x4"));
  const std::string floats = raw_bytes<float>(scan_rows(1000), 4);
  EXPECT_TRUE(
      message_of([&] {
        read_raw_bytes(floats, "f16x4");
      }).ends_with("; it looks like f32x4: give layout = f32x4, in the program --layout f32x4"));
}

TEST(RawScan, WhoseValuesCannotBeMetresIsRefusedWithTheLikelyLayout) {
  const std::string bytes = raw_bytes<double>(scan_rows(1000), 4);
  const std::string message = message_of([&] { read_raw_bytes(bytes); });
  EXPECT_NE(message.find("scan.bin: read as f32x4, point "), std::string::npos) << message;
  EXPECT_NE(message.find("), which cannot be metres; it looks like f64x4: give layout = f64x4, in "
                         "the program --layout f64x4"),
            std::string::npos)
      << message;
}

TEST(RawScan, OfAnotherNumberOfColumnsIsRefusedWhoeverSaidIt) {
  const std::string bytes = raw_bytes<float>(scan_rows(1000), 5);
  for (const char* told : {"", "f32x4"}) {
    EXPECT_EQ(message_of([&] { read_raw_bytes(bytes, told); }),
              "scan.bin: read as f32x4, columns do not line up from point to point; it looks like "
              "f32x5: give layout = f32x5, in the program --layout f32x5");
  }
  EXPECT_EQ(read_raw_bytes(bytes, "f32x5").size(), 1000);
}

TEST(RawScan, InNoOrderAtAllIsNotMistakenForAnotherLayout) {
  Random random(7);
  std::vector<Row> rows;
  for (int i = 0; i < 4000; ++i) {
    rows.push_back({static_cast<float>(random.uniform(-50, 50)),
                    static_cast<float>(random.uniform(-50, 50)),
                    static_cast<float>(random.uniform(-2, 4)), 0.0f});
  }
  expect_points(read_raw_bytes(raw_bytes<float>(rows, 4)), rows);
}

TEST(RawScan, OfNoiseIsRefused) {
  Random random(3);
  std::string bytes;
  for (int i = 0; i < 4000; ++i)
    append(bytes, random.bits());
  const std::string message = message_of([&] { read_raw_bytes(bytes); });
  EXPECT_NE(message.find("which cannot be metres; no usual layout fits either, so this may not be "
                         "a point cloud or may be truncated"),
            std::string::npos)
      << message;
}

TEST(RawScan, OfDenormalsIsRefused) {
  std::string bytes;
  for (std::uint32_t i = 0; i < 400; ++i)
    append(bytes, i + 1);
  EXPECT_EQ(message_of([&] { read_raw_bytes(bytes); }),
            "scan.bin: read as f32x4, 300 of 300 coordinates are NaN or below a micrometre, which "
            "cannot be metres; no usual layout fits either, so this may not be a point cloud or "
            "may be truncated");
}

TEST(RawScan, WithAPointThatIsNotFiniteNamesTheFirst) {
  for (const std::size_t column : {0u, 3u}) {
    std::vector<Row> rows = scan_rows(200);
    rows[17] = {1, 2, 3, 4};
    rows[17][column] = std::numeric_limits<float>::quiet_NaN();
    rows[90][1] = std::numeric_limits<float>::infinity();
    const std::string bytes = raw_bytes<float>(rows, 4);
    EXPECT_EQ(message_of([&] { read_raw_bytes(bytes); }),
              column == 0 ? "scan.bin: point 17 is (nan, 2, 3), intensity 4, which is not finite; "
                            "remove such points first"
                          : "scan.bin: point 17 is (1, 2, 3), intensity nan, which is not finite; "
                            "remove such points first");
  }
}

TEST(RawScan, RefusesLayoutsThatAreNone) {
  for (const char* layout : {"f32", "f32x", "f32x2", "f32x65", "i32x4", "f32x4 ", "x4", "f32x-4"}) {
    EXPECT_EQ(message_of([&] { read_raw_bytes({}, layout); }),
              "layout = \"" + std::string(layout) +
                  "\"; give f16, f32 or f64, an x, and 3 to 64 columns, like f32x4");
  }
}

}   // namespace
}   // namespace pumice
