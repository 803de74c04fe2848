// Scans from files. What a file says of itself is believed only as far as its bytes bear it out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pumice/points/point_cloud.hpp>

namespace pumice {

struct ReadOptions {
  /// Type and number of columns of a raw file whose name does not tell: "f32x4", "f32x5", "f16x5",
  /// "f64x4", … Columns are x y z, intensity, then seconds before the last sweep (the ring in a
  /// .pcd.bin); any further ones are left out.
  std::string layout{};
};

/// Reads by name:
///   .bin                 x y z intensity, float32 (KITTI)
///   …_f16x5.bin          a raw file that names its layout
///   .pcd.bin             x y z intensity ring, float32 (nuScenes)
///   .pcd                 ascii, binary, binary_compressed; points that are not finite are dropped
///   .ply                 ascii, binary of either byte order
///   .npy                 [P, 3 or more] of f2, f4 or f8
///   .npz                 its array named points, xyz or coords, or its only one
/// UserError for a file that is truncated, foreign, not finite (naming the first such point, .pcd
/// excepted), or raw and not in the layout it should have (naming the likely one).
PointCloud read_points(const std::filesystem::path& path, const ReadOptions& options = {});

/// The name without the ending that tells what it is, "000000" of "000000.bin" and "a" of
/// "a.pcd.bin"; nothing for a name that read_points does not know without a layout.
std::optional<std::string> scan_stem(const std::filesystem::path& path);

enum class PointFormat : unsigned char { raw, pcd, ply, npy, npz };

/// The same from memory; `name` appears in errors and tells the layout of a raw scan.
PointCloud read_points_from(std::span<const std::byte> bytes, PointFormat format,
                            const ReadOptions& options = {},
                            std::string_view name = "points in memory");

/// SemanticKITTI's .label: the class, which is the low 16 bits, of every point. i32 [P]. UserError
/// for the name of a scan.
Tensor read_labels(const std::filesystem::path& path);

/// Any .npy array of f8, f4, f2, i8, i4, i2 or u1, row-major whatever its order in the file.
Tensor read_npy(const std::filesystem::path& path);

}   // namespace pumice
