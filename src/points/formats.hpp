// One reader a format. `name` opens every message.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <pumice/points/point_cloud.hpp>

#include "points/columns.hpp"

namespace pumice::detail {

using Bytes = std::span<const std::byte>;

/// Rows of a raw file: floats of one type, x y z first.
struct RawLayout {
  Scalar type = Scalar::f32;
  int columns = 4;
  friend bool operator==(const RawLayout&, const RawLayout&) = default;
};

/// "f32x4" and the like; nothing for other text.
std::optional<RawLayout> parse_layout(std::string_view text);
std::string to_string(const RawLayout& layout);
/// The layout at the end of a file name: f16x5 for "sweep_f16x5.bin".
std::optional<RawLayout> layout_of_name(std::string_view name);
/// The layout among the usual ones whose values can be metres and whose columns line up best.
std::optional<RawLayout> likely_layout(Bytes bytes);

struct RawOptions {
  RawLayout layout{};
  Role fifth = Role::time;   // what a fifth column is
};
PointCloud read_raw(Bytes bytes, const RawOptions& options, std::string_view name);

PointCloud read_pcd(Bytes bytes, std::string_view name);
PointCloud read_ply(Bytes bytes, std::string_view name);
PointCloud read_npy_points(Bytes bytes, std::string_view name);
PointCloud read_npz(Bytes bytes, std::string_view name);
Tensor read_npy_array(Bytes bytes, std::string_view name);

}   // namespace pumice::detail
