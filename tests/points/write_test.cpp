// What is written reads back to the same bits, and a write that fails leaves what was there.
#include <pumice/points/write.hpp>

#include <cstring>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using namespace test;

std::string text_in(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

PointCloud cloud_of(const std::vector<Row>& rows) {
  const auto points = static_cast<std::int64_t>(rows.size());
  PointCloud cloud;
  cloud.positions = Tensor({points, 3}, DType::f32);
  cloud.intensity = Tensor({points}, DType::f32);
  cloud.time = Tensor({points}, DType::f32);
  cloud.ring = Tensor({points}, DType::i32);
  cloud.labels = Tensor({points}, DType::i32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      cloud.positions.span<float>()[3 * i + axis] = rows[i][axis];
    }
    cloud.intensity.span<float>()[i] = rows[i][3];
    cloud.time.span<float>()[i] = -0.1f * static_cast<float>(i);
    cloud.ring.span<std::int32_t>()[i] = static_cast<std::int32_t>(i % 64);
    cloud.labels.span<std::int32_t>()[i] = static_cast<std::int32_t>(i % 20) - 1;
  }
  return cloud;
}

template <class T> bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.span<T>(), b.span<T>());
}

TEST(WritingPly, KeepsEveryBitAsTextAndAsBytes) {
  const TemporaryFolder folder;
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    const PointCloud cloud = cloud_of(rows);
    for (const bool binary : {true, false}) {
      write_ply(folder / "a.ply", cloud, {.binary = binary, .colour = {}});
      const PointCloud back = read_points(folder / "a.ply");
      expect_points(back, rows);
      EXPECT_TRUE(equal<float>(back.time, cloud.time));
      EXPECT_TRUE(equal<std::int32_t>(back.ring, cloud.ring));
      EXPECT_TRUE(equal<std::int32_t>(back.labels, cloud.labels));
    }
  }
  EXPECT_EQ(folder.files(), 1) << "no temporary file may stay";
}

TEST(WritingPly, TakesAColourForEachPoint) {
  const TemporaryFolder folder;
  PointCloud cloud;
  cloud.positions = Tensor::full({1, 3}, DType::f32, 0.5);
  const std::vector<std::uint8_t> colour{255, 128, 0};
  const Tensor colours = Tensor::from(std::span<const std::uint8_t>(colour), {1, 3});
  write_ply(folder / "a.ply", cloud, {.binary = false, .colour = colours});
  EXPECT_EQ(text_in(folder / "a.ply"),
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\n"
            "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n"
            "end_header\n0.5 0.5 0.5 255 128 0\n");
  cloud.positions = Tensor::zeros({2, 3}, DType::f32);
  EXPECT_EQ(message_of([&] { write_ply(folder / "a.ply", cloud, {.colour = colours}); }),
            "write_ply: colour has shape [1, 3] u8; expected [2, 3] u8");
}

TEST(WritingPly, RefusesColumnsOfAnotherLength) {
  const TemporaryFolder folder;
  PointCloud cloud = cloud_of(scan_rows(5));
  cloud.ring = Tensor::zeros({4}, DType::i32);
  EXPECT_EQ(message_of([&] { write_ply(folder / "a.ply", cloud); }),
            "write_ply: ring has shape [4] i32; expected [5] i32");
  EXPECT_EQ(folder.files(), 0);
}

TEST(WritingNpy, KeepsEveryTypeAndShape) {
  const TemporaryFolder folder;
  for (const std::int64_t size : kSizes) {
    for (const DType dtype :
         {DType::f64, DType::f32, DType::f16, DType::i64, DType::i32, DType::i16, DType::u8}) {
      const Tensor array = Tensor::full({size, 3}, dtype, 7.0);
      write_npy(folder / "a.npy", array);
      const Tensor back = read_npy(folder / "a.npy");
      ASSERT_EQ(back.dtype(), dtype);
      ASSERT_EQ(back.shape(), array.shape());
      if (size > 0) {
        EXPECT_EQ(std::memcmp(back.raw(), array.raw(), array.bytes()), 0);
      }
    }
  }
}

TEST(WritingNpy, WritesTheHeaderNumPyWrites) {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy", Tensor::zeros({5}, DType::i32));
  const std::string text = text_in(folder / "a.npy");
  ASSERT_EQ(text.size(), 128u + 20u);
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(text.substr(10, 56), "{'descr': '<i4', 'fortran_order': False, 'shape': (5, ),");
  EXPECT_EQ(text[127], '\n');
}

TEST(WritingNpy, ReadsColumnMajorArraysRowByRow) {
  const TemporaryFolder folder;
  const std::vector<Row> rows = scan_rows(33);
  std::ofstream(folder / "a.npy", std::ios::binary) << npy_bytes<double>(rows, 4, {">f8", true, 1});
  const Tensor array = read_npy(folder / "a.npy");
  ASSERT_EQ(array.shape(), (Shape{33, 4}));
  for (std::size_t i = 0; i < 33 * 4; ++i) {
    EXPECT_EQ(array.span<double>()[i], static_cast<double>(rows[i / 4][i % 4]));
  }
}

TEST(WritingNpy, RefusesBrainFloats) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { write_npy(folder / "a.npy", Tensor::zeros({2}, DType::bf16)); }),
            "write_npy: NumPy has no bf16; convert to f32 first");
  EXPECT_EQ(folder.files(), 0);
}

TEST(Writing, ReplacesAFileAtOnceOrNotAtAll) {
  const TemporaryFolder folder;
  const Tensor array = Tensor::zeros({2}, DType::f32);
  EXPECT_EQ(message_of([&] { write_npy(folder / "no" / "a.npy", array); }),
            (folder / "no" / "a.npy").string() + ": cannot be written: No such file or directory");
  EXPECT_EQ(message_of([&] { write_npy("/dev/null", array); }),
            "/dev/null: is not a regular file, so it is not overwritten; give another name");
  write_npy(folder / "a.npy", array);
  std::filesystem::create_symlink("a.npy", folder / "link.npy");
  write_npy(folder / "link.npy", Tensor::zeros({3}, DType::f32));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.npy"));
  EXPECT_EQ(read_npy(folder / "a.npy").rows(), 3);
  EXPECT_EQ(folder.files(), 2);
}

}   // namespace
}   // namespace pumice
