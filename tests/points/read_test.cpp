// Reading by name: which file is read how, labels, and the real scans.
#include <pumice/points/read.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

#include <gtest/gtest.h>

#include "points/expect_points.hpp"
#include "support/data.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using namespace test;

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Reading, GoesByTheNameOfTheFile) {
  const TemporaryFolder folder;
  const std::vector<Row> rows = scan_rows(100);
  const std::pair<const char*, std::string> files[] = {
      {"a.bin", raw_bytes<float>(rows, 4)},
      {"a_f64x4.bin", raw_bytes<double>(rows, 4)},
      {"a.pcd.bin", raw_bytes<float>(rows, 5)},
      {"a.PCD", pcd_compressed(rows)},
      {"a.ply", ply_bytes(rows, PlyStorage::big)},
      {"a.npy", npy_bytes<float>(rows, 4)},
      {"a.npz", zip_bytes({{"points.npy", npy_bytes<float>(rows, 4)}})},
  };
  for (const auto& [name, bytes] : files) {
    write_bytes(folder / name, bytes);
    expect_points(read_points(folder / name), rows);
  }
}

TEST(Reading, ANameThatTellsNothingNeedsALayout) {
  const TemporaryFolder folder;
  const std::vector<Row> rows = scan_rows(100);
  const std::filesystem::path path = folder / "a.xyzi";
  write_bytes(path, raw_bytes<float>(rows, 4));
  expect_points(read_points(path, {.layout = "f32x4"}), rows);
  EXPECT_EQ(message_of([&] { read_points(path); }),
            path.string() +
                ": its name does not tell what it is; scans end in .bin, .pcd, .ply, .npy or .npz; "
                "for raw numbers give their layout, as f32x4 (in the program --layout f32x4)");
}

TEST(Reading, WhatIsNotThereIsNotAskedForALayout) {
  const TemporaryFolder folder;
  for (const char* name : {"velodyne", "velodyne/", "a.xyzi"}) {
    const std::filesystem::path path = folder / name;
    EXPECT_EQ(message_of([&] { read_points(path); }),
              path.string() + ": there is no such file or folder");
  }
}

TEST(Reading, AFormatThatDescribesItselfTakesNoLayout) {
  EXPECT_EQ(
      message_of([] { read_points_from({}, PointFormat::ply, {.layout = "f32x4"}, "a.ply"); }),
      "a.ply: describes its layout itself; leave layout = f32x4 out");
}

TEST(Reading, WhatIsNotThereSaysSo) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "nowhere.bin";
  EXPECT_EQ(message_of([&] { read_points(path); }),
            path.string() + ": cannot be opened: No such file or directory");
  std::filesystem::create_directory(folder / "folder.bin");
  EXPECT_EQ(message_of([&] { read_points(folder / "folder.bin"); }),
            (folder / "folder.bin").string() +
                " is a folder, and a scan is a file; name one of the files in it");
}

TEST(Reading, AScanHasNoLabelsAlone) {
  const TemporaryFolder folder;
  const std::vector<Row> rows = scan_rows(100);
  write_bytes(folder / "a.bin", raw_bytes<float>(rows, 4));
  EXPECT_EQ(message_of([&] { read_labels(folder / "a.bin"); }),
            (folder / "a.bin").string() +
                ": .bin is the ending of scans; give the .label file of this one");
}

TEST(Reading, AStemIsTheNameWithoutTheEndingOfItsFormat) {
  EXPECT_EQ(scan_stem("velodyne/000000.bin"), "000000");
  EXPECT_EQ(scan_stem("a.pcd.bin"), "a");
  EXPECT_EQ(scan_stem("a.b.PLY"), "a.b");
  EXPECT_EQ(scan_stem("a_f64x4.bin"), "a_f64x4");
  for (const char* name : {"a.txt", "bin", "a.bin.gz", "a.label", ""})
    EXPECT_EQ(scan_stem(name), std::nullopt) << name;
}

/// Opening a pipe waits for someone to write to it.
TEST(Reading, APipeIsRefusedWithoutWaiting) {
  const TemporaryFolder folder;
  for (const char* name : {"a.bin", "a.pcd.bin", "a.pcd", "a.ply", "a.npy", "a.npz", "a.label"}) {
    ASSERT_EQ(mkfifo((folder / name).c_str(), 0600), 0);
    const std::string said = (folder / name).string() + ": is not a regular file";
    if (std::string_view(name) == "a.label") {
      EXPECT_EQ(message_of([&] { read_labels(folder / name); }), said);
    } else {
      EXPECT_EQ(message_of([&] { read_points(folder / name); }), said);
    }
    EXPECT_EQ(message_of([&] { read_npy(folder / name); }), said);
  }
}

TEST(Reading, AFolderIsNamedAsOne) {
  const TemporaryFolder folder;
  const std::string said = folder.path().string() + ": is a folder; give the name of a file in it";
  EXPECT_EQ(message_of([&] { read_labels(folder.path()); }), said);
  EXPECT_EQ(message_of([&] { read_npy(folder.path()); }), said);
}

/// The file takes no room on the disk, and its bytes would take more than there is in memory.
TEST(Reading, AScanBeyondMemoryIsRefusedByName) {
  const TemporaryFolder folder;
  for (const char* name : {"a.bin", "a.npz", "a.label"}) {
    write_bytes(folder / name, "");
    ASSERT_EQ(::truncate((folder / name).c_str(), std::int64_t{1} << 40), 0);
  }
  const auto said = [&](const char* name) {
    return (folder / name).string() + ": 1099511627776 bytes are more than this machine's memory, ";
  };
  EXPECT_EQ(message_of([&] { read_points(folder / "a.bin"); }).find(said("a.bin")), 0u);
  EXPECT_EQ(message_of([&] { read_points(folder / "a.npz"); }).find(said("a.npz")), 0u);
  EXPECT_EQ(message_of([&] { read_labels(folder / "a.label"); }).find(said("a.label")), 0u);
}

/// Names of files and what is in them stay one short line.
TEST(Reading, NamesAreQuotedSoThatNoTerminalObeysThem) {
  const TemporaryFolder folder;
  const std::string name = "a\x1b[31m\nb.ply";
  write_bytes(folder / name, "ply\nformat \x1b[32m\x07 1.0\n");
  const std::string said = message_of([&] { read_points(folder / name); });
  EXPECT_NE(said.find("a\\x1b[31m\\nb.ply"), std::string::npos) << said;
  EXPECT_NE(said.find("\\x1b[32m\\x07"), std::string::npos) << said;
  EXPECT_EQ(said.find_first_of("\x1b\n\x07"), std::string::npos) << said;
  const std::string long_name(5000, 'n');
  EXPECT_LT(
      message_of([&] { read_points_from({}, PointFormat::npz, {}, long_name + ".npz"); }).size(),
      400u);
}

TEST(Reading, LabelsAreTheLowHalf) {
  const TemporaryFolder folder;
  std::string bytes;
  for (const std::uint32_t label : {0u, 40u, 0x0007'00fdu, 0xffff'ffffu})
    append(bytes, label);
  write_bytes(folder / "a.label", bytes);
  const Tensor labels = read_labels(folder / "a.label");
  const std::vector<std::int32_t> expected{0, 40, 253, 65535};
  EXPECT_TRUE(std::ranges::equal(labels.span<std::int32_t>(), expected));
  write_bytes(folder / "b.label", bytes + "x");
  EXPECT_EQ(
      message_of([&] { read_labels(folder / "b.label"); }),
      (folder / "b.label").string() + ": 17 bytes are not a whole number of labels of 4 bytes");
}

TEST(RealScans, AreReadWithoutBeingTold) {
  struct Known {
    const char* name;
    std::int64_t points;
  };
  for (const Known& known :
       {Known{"lidar/semantickitti/seq00_000000.bin", 124668},
        Known{"lidar/kitti/training_000001.bin", 120268},
        Known{"lidar/nuscenes/ten_sweeps_f16x5.bin", 271156},
        Known{"lidar/nuscenes/"
              "n008-2018-08-01-15-16-36-0400__LIDAR_TOP__1533151603597909.pcd.bin",
              34752},
        Known{"lidar/other/ouster_second_000000_f64x4.bin", 65536},
        Known{"lidar/other/spconv_benchmark_cloud.npz", 198130}}) {
    PUMICE_NEEDS_DATA(path, known.name);
    EXPECT_EQ(read_points(path).size(), known.points) << known.name;
  }
}

TEST(RealScans, InAnotherLayoutNameTheirOwn) {
  PUMICE_NEEDS_DATA(sweeps, "lidar/nuscenes/ten_sweeps_f16x5.bin");
  PUMICE_NEEDS_DATA(ouster, "lidar/other/ouster_second_000000_f64x4.bin");
  const TemporaryFolder folder;
  std::filesystem::copy_file(ouster, folder / "plain.bin");
  EXPECT_EQ(
      message_of([&] { read_points(folder / "plain.bin"); }),
      (folder / "plain.bin").string() +
          ": read as f32x4, point 0 is at (3.68935e+19, 2.11136, -2), which cannot be metres; "
          "it looks like f64x4: give layout = f64x4, in the program --layout f64x4");
  for (const char* layout : {"f32x4", "f32x5", "f64x5"}) {
    const std::string message = message_of([&] { read_points(sweeps, {.layout = layout}); });
    EXPECT_TRUE(message.ends_with(
        "; it looks like f16x5: give layout = f16x5, in the program --layout f16x5"))
        << message;
  }
}

TEST(RealScans, HaveALabelForEveryPoint) {
  PUMICE_NEEDS_DATA(path, "lidar/semantickitti/seq00_000000.label");
  const Tensor labels = read_labels(path);
  EXPECT_EQ(labels.rows(), 124668);
  const auto values = labels.span<std::int32_t>();
  EXPECT_GT(std::ranges::count(values, 40), 10000) << "road";
  EXPECT_LE(std::ranges::max(values), 259) << "the largest class of SemanticKITTI";
}

}   // namespace
}   // namespace pumice
