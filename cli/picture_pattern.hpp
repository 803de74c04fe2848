// Pictures of sparse matrices: where entries are, and how long rows are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edges_input.hpp"
#include "picture.hpp"

namespace pumice::cli {

/// Rows of `from` to `to` entries, both of them among these.
struct LengthClass {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t rows = 0;
};

/// Of 0, 1, 2 to 3, 4 to 7 and so on up to the longest; none where there are no rows.
std::vector<LengthClass> length_classes(const std::vector<std::int64_t>& lengths);

/// "0", "1", "2-3".
std::string range_of(const LengthClass& one);

/// The pattern on the left, row 0 on top, and a bar for each class of lengths on the right. Where a
/// pixel stands for many places, the brighter it is the more entries it has, on a scale of
/// logarithms; where a place is many pixels, it is a rectangle. The longer side of the matrix fills
/// the panel, and the other is at least a 16th of it. Of `options`, width, height and caption
/// count.
Image render_pattern(const EdgesInput& edges, const std::vector<LengthClass>& classes,
                     const PictureOptions& options);

}   // namespace pumice::cli
