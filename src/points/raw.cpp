// Raw scans: rows of floats and nothing else, so everything rests on plausibility.
#include <cmath>

#include "points/plausible.hpp"

namespace pumice::detail {
namespace {

constexpr std::int64_t kOrderRows = 64;   // fewer say nothing about the order of columns
constexpr std::int64_t kFewRows = 8;      // enough to see that they go on as they began
constexpr double kMixedUp = 0.3;          // disorder above which another layout is considered
constexpr double kMuchBetter = 0.5;       // and this share of it makes that one the likely one

/// A scan that was cut off: what is whole of it reads well as the given layout.
bool is_cut_off(Bytes bytes, const RawLayout& given, std::size_t left_over) {
  const PointColumns columns =
      raw_columns(bytes.first(bytes.size() - left_over), given, Role::time);
  return columns.points >= kFewRows && can_be_metres(columns) && disorder(columns) < kMixedUp;
}

/// "; it looks like f16x5: give layout = f16x5, in the program --layout f16x5"
std::string advice(Bytes bytes, const RawLayout& given) {
  const std::optional<RawLayout> likely = likely_layout(bytes);
  if (!likely || *likely == given) {
    return "; no usual layout fits either, so this may not be a point cloud or may be truncated";
  }
  const std::string text = to_string(*likely);
  return "; it looks like " + text + ": give layout = " + text + ", in the program --layout " +
         text;
}

/// The layout that makes much more sense of the order of values than the given one, if any.
std::optional<RawLayout> better_layout(Bytes bytes, const PointColumns& columns,
                                       const RawLayout& given) {
  if (columns.points < kOrderRows) return std::nullopt;
  const double own = disorder(columns);
  if (own < kMixedUp) return std::nullopt;
  const std::optional<RawLayout> likely = likely_layout(bytes);
  if (!likely || *likely == given) return std::nullopt;
  const double other = disorder(raw_columns(bytes, *likely, Role::time));
  return other < kMuchBetter * own ? likely : std::nullopt;
}

/// Throws unless every coordinate can be metres. Some that are not finite are left to `assemble`,
/// unless they are signs of another layout.
void check_values(Bytes bytes, const PointColumns& columns, const RawLayout& layout,
                  std::string_view name) {
  std::int64_t odd = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < columns.points; ++i) {
    const double at[3] = {value_at(columns[Role::x], i), value_at(columns[Role::y], i),
                          value_at(columns[Role::z], i)};
    for (const double value : at) {
      PUMICE_EXPECTS(!(std::abs(value) > kFarthest) || std::isinf(value), name, ": read as ",
                     to_string(layout), ", point ", i, " is at (", at[0], ", ", at[1], ", ", at[2],
                     "), which cannot be metres", advice(bytes, layout));
      finite &= std::isfinite(value);
      odd += std::isnan(value) || (value != 0.0 && std::abs(value) < kNearest) ? 1 : 0;
    }
  }
  PUMICE_EXPECTS(2 * odd <= 3 * columns.points, name, ": read as ", to_string(layout), ", ", odd,
                 " of ", 3 * columns.points,
                 " coordinates are NaN or below a micrometre, which cannot be metres",
                 advice(bytes, layout));
  PUMICE_EXPECTS(finite || !better_layout(bytes, columns, layout), name, ": read as ",
                 to_string(layout), ", some coordinates are not finite", advice(bytes, layout));
}

/// Throws when another layout makes much more sense of the order of values.
void check_order(Bytes bytes, const PointColumns& columns, const RawLayout& layout,
                 std::string_view name) {
  PUMICE_EXPECTS(!better_layout(bytes, columns, layout), name, ": read as ", to_string(layout),
                 ", columns do not line up from point to point", advice(bytes, layout));
}

}   // namespace

PointCloud read_raw(Bytes bytes, const RawOptions& options, std::string_view name) {
  const RawLayout& layout = options.layout;
  const auto row = static_cast<std::size_t>(size_of(layout.type) * layout.columns);
  const std::size_t left_over = bytes.size() % row;
  const std::size_t points = bytes.size() / row;
  PUMICE_EXPECTS(left_over == 0 || !is_cut_off(bytes, layout, left_over), name, ": ", bytes.size(),
                 " bytes are ", points, " points of ", to_string(layout), " and ", left_over,
                 " bytes more; it looks cut off: copy it again");
  PUMICE_EXPECTS(left_over == 0, name, ": ", bytes.size(), " bytes are not a whole number of ",
                 to_string(layout), " points of ", row, " bytes", advice(bytes, layout));
  const PointColumns columns = raw_columns(bytes, layout, options.fifth);
  check_values(bytes, columns, layout, name);
  check_order(bytes, columns, layout, name);
  return assemble(columns, NotFinite::refuse, name);
}

}   // namespace pumice::detail
