// What every scan format comes down to: typed columns with a stride, made into a point cloud.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <pumice/points/point_cloud.hpp>

namespace pumice::detail {

enum class Scalar : unsigned char { i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

std::int64_t size_of(Scalar type);

/// One value a point, `stride` bytes apart, at no particular alignment.
struct Column {
  const std::byte* first = nullptr;   // null when the file has no such column
  std::int64_t stride = 0;
  Scalar type = Scalar::f32;
  bool swapped = false;   // stored in the other byte order
};

/// What a column means.
enum class Role : unsigned char { x, y, z, intensity, time, ring, label };
inline constexpr std::size_t kRoles = 7;

/// The meaning of a field's name in files that name their fields, in any case.
std::optional<Role> role_of(std::string_view field);

struct PointColumns {
  std::int64_t points = 0;
  std::array<Column, kRoles> columns{};

  Column& operator[](Role role) { return columns[static_cast<std::size_t>(role)]; }
  const Column& operator[](Role role) const { return columns[static_cast<std::size_t>(role)]; }
};

enum class NotFinite : unsigned char { drop, refuse };

/// Converts to float32 (int32 for ring and label) and deals with points that are not finite in
/// x, y, z, intensity or time. `name` opens every message.
PointCloud assemble(const PointColumns& columns, NotFinite policy, std::string_view name);

/// Values of a column as doubles, for looking at them.
double value_at(const Column& column, std::int64_t point);

}   // namespace pumice::detail
