// Questions to a coordinate set that need no sorting.
#include <pumice/coords/coordinate_set.hpp>

#include <algorithm>

namespace pumice {

std::int32_t CoordinateSet::find(std::span<const std::int32_t> coordinate) const {
  PUMICE_EXPECTS(coordinate.size() == static_cast<std::size_t>(dimension()) + 1,
                 "coordinate: ", coordinate.size(), " numbers for a set of dimension ", dimension(),
                 "; give the batch index and then one number an axis");
  const std::int32_t batch = coordinate[0];
  if (batch < 0 || batch >= batch_size_) return -1;
  const std::int32_t* cell = coordinate.data() + 1;
  for (int axis = 0; axis < dimension(); ++axis) {
    if (!in_layout(layout(), axis, cell[axis])) return -1;
  }
  return index_.find_row(encode_key(layout(), batch, cell));
}

bool CoordinateSet::same_rows(const CoordinateSet& other) const {
  if (this == &other) return true;
  if (dimension() != other.dimension() || size() != other.size() ||
      !std::equal(stride().begin(), stride().begin() + dimension(), other.stride().begin())) {
    return false;
  }
  const auto mine = coordinates_.span<std::int32_t>();
  const auto theirs = other.coordinates_.span<std::int32_t>();
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
}

}   // namespace pumice
