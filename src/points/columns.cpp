// Conversion of columns, and the points that are not finite.
#include "points/columns.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <pumice/core/half.hpp>

#include "points/text.hpp"

namespace pumice::detail {
namespace {

template <class T> T load(const std::byte* at, bool swapped) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), at, sizeof(T));
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

/// Calls `body(T{})` with the type behind `type`.
template <class Body> decltype(auto) dispatch(Scalar type, Body&& body) {
  switch (type) {
    case Scalar::i8: return body(std::int8_t{});
    case Scalar::u8: return body(std::uint8_t{});
    case Scalar::i16: return body(std::int16_t{});
    case Scalar::u16: return body(std::uint16_t{});
    case Scalar::i32: return body(std::int32_t{});
    case Scalar::u32: return body(std::uint32_t{});
    case Scalar::i64: return body(std::int64_t{});
    case Scalar::u64: return body(std::uint64_t{});
    case Scalar::f16: return body(Half{});
    case Scalar::f32: return body(float{});
    case Scalar::f64: return body(double{});
  }
  raise_internal(std::source_location::current(), "scalar ", static_cast<int>(type));
}

float as_float(Half value) {
  return to_float(value);
}
template <class T> float as_float(T value) {
  return static_cast<float>(value);
}
double as_double(Half value) {
  return to_float(value);
}
template <class T> double as_double(T value) {
  return static_cast<double>(value);
}

/// Writes the column as floats `step` apart.
void convert_floats(const Column& column, std::int64_t points, float* out, std::int64_t step) {
  dispatch(column.type, [&](auto type) {
    using T = decltype(type);
    const std::byte* at = column.first;
    for (std::int64_t i = 0; i < points; ++i, at += column.stride) {
      out[i * step] = as_float(load<T>(at, column.swapped));
    }
  });
}

Tensor float_column(const PointColumns& columns, Role role) {
  if (columns[role].first == nullptr) return {};
  Tensor result({columns.points}, DType::f32);
  convert_floats(columns[role], columns.points, result.data<float>(), 1);
  return result;
}

/// The rows to keep; all of them when `skipped` is empty.
class KeptRows {
 public:
  KeptRows(std::int64_t points, const std::vector<std::int64_t>& skipped) : points_(points) {
    if (skipped.empty()) return;
    auto next = skipped.begin();
    for (std::int64_t i = 0; i < points; ++i) {
      if (next != skipped.end() && *next == i) {
        ++next;
      } else {
        rows_.push_back(i);
      }
    }
    points_ = static_cast<std::int64_t>(rows_.size());
    some_ = true;
  }
  std::int64_t size() const { return points_; }
  bool all() const { return !some_; }
  std::int64_t operator[](std::int64_t i) const {
    return some_ ? rows_[static_cast<std::size_t>(i)] : i;
  }

 private:
  std::vector<std::int64_t> rows_;
  std::int64_t points_ = 0;
  bool some_ = false;
};

Tensor int_column(const Column& column, const KeptRows& rows, const char* what,
                  std::string_view name) {
  if (column.first == nullptr) return {};
  Tensor result({rows.size()}, DType::i32);
  auto* out = result.data<std::int32_t>();
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const double value = value_at(column, rows[i]);
    PUMICE_EXPECTS(value >= -0x1p31 && value < 0x1p31 && value == std::floor(value), name, ": ",
                   what, " of point ", rows[i], " is ", value,
                   ", which is not a 32-bit whole number");
    out[i] = static_cast<std::int32_t>(value);
  }
  return result;
}

bool finite_row(const PointCloud& cloud, std::int64_t i) {
  const float* p = cloud.positions.data<float>() + 3 * i;
  bool finite = std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
  if (cloud.intensity.defined()) finite &= std::isfinite(cloud.intensity.data<float>()[i]);
  if (cloud.time.defined()) finite &= std::isfinite(cloud.time.data<float>()[i]);
  return finite;
}

void refuse_point(const PointCloud& cloud, std::int64_t i, std::string_view name) {
  const float* p = cloud.positions.data<float>() + 3 * i;
  std::string rest;
  if (cloud.intensity.defined()) {
    rest += concatenate(", intensity ", cloud.intensity.data<float>()[i]);
  }
  if (cloud.time.defined()) rest += concatenate(", time ", cloud.time.data<float>()[i]);
  raise_user(name, ": point ", i, " is (", p[0], ", ", p[1], ", ", p[2], ")", rest,
             ", which is not finite; remove such points first");
}

Tensor keep(const Tensor& from, const KeptRows& rows) {
  if (!from.defined() || rows.all()) return from;
  const std::int64_t width = from.shape().rank() == 1 ? 1 : from.extent(1);
  Tensor result(width == 1 ? Shape{rows.size()} : Shape{rows.size(), width}, DType::f32);
  float* out = result.data<float>();
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    out = std::copy_n(from.data<float>() + rows[i] * width, width, out);
  }
  return result;
}

/// Indices of the points that are not finite; refuses the first where the policy says so.
std::vector<std::int64_t> bad_points(const PointCloud& cloud, NotFinite policy,
                                     std::string_view name) {
  std::vector<std::int64_t> bad;
  for (std::int64_t i = 0; i < cloud.size(); ++i) {
    if (finite_row(cloud, i)) continue;
    if (policy == NotFinite::refuse) refuse_point(cloud, i, name);
    bad.push_back(i);
  }
  return bad;
}

}   // namespace

std::int64_t size_of(Scalar type) {
  return dispatch(type, [](auto value) { return static_cast<std::int64_t>(sizeof(value)); });
}

double value_at(const Column& column, std::int64_t point) {
  const std::byte* at = column.first + point * column.stride;
  return dispatch(column.type,
                  [&](auto type) { return as_double(load<decltype(type)>(at, column.swapped)); });
}

std::optional<Role> role_of(std::string_view field) {
  struct Name {
    std::string_view text;
    Role role;
  };
  static constexpr Name kNames[] = {
      {"x", Role::x},
      {"y", Role::y},
      {"z", Role::z},
      {"intensity", Role::intensity},
      {"i", Role::intensity},
      {"reflectance", Role::intensity},
      {"remission", Role::intensity},
      {"scalar_intensity", Role::intensity},
      {"time", Role::time},
      {"dt", Role::time},
      {"ring", Role::ring},
      {"label", Role::label},
      {"class", Role::label},
      {"scalar_label", Role::label},
  };
  const std::string wanted = lower(field);
  for (const Name& name : kNames) {
    if (name.text == wanted) return name.role;
  }
  return std::nullopt;
}

PointCloud assemble(const PointColumns& columns, NotFinite policy, std::string_view name) {
  PointCloud cloud;
  cloud.positions = Tensor({columns.points, 3}, DType::f32);
  for (const Role axis : {Role::x, Role::y, Role::z}) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(columns[axis].first != nullptr, name, ": has no field named ", "xyz"[at],
                   ", so its points have no position");
    convert_floats(columns[axis], columns.points, cloud.positions.data<float>() + at, 3);
  }
  cloud.intensity = float_column(columns, Role::intensity);
  cloud.time = float_column(columns, Role::time);

  const std::vector<std::int64_t> bad = bad_points(cloud, policy, name);
  const KeptRows rows(columns.points, bad);
  cloud.positions = keep(cloud.positions, rows);
  cloud.intensity = keep(cloud.intensity, rows);
  cloud.time = keep(cloud.time, rows);
  cloud.ring = int_column(columns[Role::ring], rows, "ring", name);
  cloud.labels = int_column(columns[Role::label], rows, "label", name);
  cloud.dropped_points = static_cast<std::int64_t>(bad.size());
  return cloud;
}

}   // namespace pumice::detail
