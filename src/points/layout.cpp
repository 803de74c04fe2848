// Layouts of raw files: their names, and which one a file is likely to have.
//
// Two signs tell. Values: a wrong type makes astronomic numbers, denormals and NaN. Order: scanners
// go round, so the same column of neighbouring rows is alike, and with a wrong number of columns
// neighbours are strangers.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "points/formats.hpp"
#include "points/plausible.hpp"

namespace pumice::detail {
namespace {

struct TypeName {
  std::string_view name;
  Scalar type;
};
constexpr TypeName kTypes[] = {{"f16", Scalar::f16}, {"f32", Scalar::f32}, {"f64", Scalar::f64}};
constexpr int kMostColumns = 64;

constexpr std::int64_t kSample = 4096;   // rows looked at: a few turns of 32 beams

}   // namespace

std::optional<RawLayout> parse_layout(std::string_view text) {
  for (const TypeName& type : kTypes) {
    if (!text.starts_with(type.name) || text.size() < type.name.size() + 2) continue;
    if (text[type.name.size()] != 'x') return std::nullopt;
    const std::string_view digits = text.substr(type.name.size() + 1);
    int columns = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), columns);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    if (columns < 3 || columns > kMostColumns) return std::nullopt;
    return RawLayout{type.type, columns};
  }
  return std::nullopt;
}

std::string to_string(const RawLayout& layout) {
  for (const TypeName& type : kTypes) {
    if (type.type == layout.type)
      return std::string(type.name) + "x" + std::to_string(layout.columns);
  }
  raise_internal(std::source_location::current(), "a raw layout of an integer type");
}

std::optional<RawLayout> layout_of_name(std::string_view name) {
  const std::size_t dot =
      name.find('.', name.find_last_of('/') == std::string_view::npos ? 0 : name.find_last_of('/'));
  const std::string_view stem = name.substr(0, dot);
  const std::size_t underscore = stem.find_last_of('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  return parse_layout(stem.substr(underscore + 1));
}

PointColumns raw_columns(Bytes bytes, const RawLayout& layout, Role fifth) {
  static constexpr std::byte kNothing{};
  const std::byte* first = bytes.empty() ? &kNothing : bytes.data();
  const std::int64_t width = size_of(layout.type);
  PointColumns columns;
  columns.points = static_cast<std::int64_t>(bytes.size()) / (width * layout.columns);
  const std::array<Role, 5> roles{Role::x, Role::y, Role::z, Role::intensity, fifth};
  for (std::size_t i = 0; i < roles.size() && i < static_cast<std::size_t>(layout.columns); ++i) {
    const std::int64_t offset = bytes.empty() ? 0 : static_cast<std::int64_t>(i) * width;
    columns[roles[i]] = Column{first + offset, width * layout.columns, layout.type, false};
  }
  return columns;
}

double disorder(const PointColumns& columns) {
  const std::int64_t rows = std::min(columns.points, kSample);
  if (rows < 2) return 0.0;
  double sum = 0.0;
  std::int64_t steps = 0;
  for (const Role axis : {Role::x, Role::y, Role::z}) {
    double before = value_at(columns[axis], 0);
    for (std::int64_t i = 1; i < rows; ++i) {
      const double value = value_at(columns[axis], i);
      if (std::isfinite(value) && std::isfinite(before)) {
        sum += std::abs(value - before) / (std::abs(value) + std::abs(before) + 1e-3);
        ++steps;
      }
      before = value;
    }
  }
  return steps == 0 ? 0.0 : sum / static_cast<double>(steps);
}

bool can_be_metres(const PointColumns& columns) {
  const std::int64_t rows = std::min(columns.points, kSample);
  std::int64_t tiny = 0;
  double farthest = 0.0;
  for (const Role axis : {Role::x, Role::y, Role::z}) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const double value = std::abs(value_at(columns[axis], i));
      if (!(value <= kFarthest)) return false;   // NaN too
      farthest = std::max(farthest, value);
      tiny += value != 0.0 && value < kNearest ? 1 : 0;
    }
  }
  return 10 * tiny <= 3 * rows && farthest >= kSmallestScene;
}

std::optional<RawLayout> likely_layout(Bytes bytes) {
  static constexpr RawLayout kUsual[] = {
      {Scalar::f32, 4}, {Scalar::f32, 5}, {Scalar::f16, 5}, {Scalar::f64, 4}, {Scalar::f32, 3},
      {Scalar::f16, 4}, {Scalar::f64, 3}, {Scalar::f64, 5}, {Scalar::f32, 6}, {Scalar::f16, 3},
  };
  std::optional<RawLayout> best;
  double least = std::numeric_limits<double>::infinity();
  for (const RawLayout& layout : kUsual) {
    const auto row = static_cast<std::size_t>(size_of(layout.type) * layout.columns);
    if (bytes.empty() || bytes.size() % row != 0) continue;
    const PointColumns columns = raw_columns(bytes, layout, Role::time);
    if (columns.points < 2 || !can_be_metres(columns)) continue;   // one point is in any order
    const double score = disorder(columns);
    if (score < least) {
      least = score;
      best = layout;
    }
  }
  return best;
}

}   // namespace pumice::detail
