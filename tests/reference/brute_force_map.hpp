// Kernel maps too simple to be wrong: cells in a std::map, loops over all cells and offsets. It
// shares no code with the library, not even its types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace pumice::brute_force {

/// Batch item, then one coordinate per axis.
using Cell = std::vector<std::int64_t>;
using Cells = std::vector<Cell>;
using Extents = std::vector<std::int64_t>;

/// in = out * stride - padding + offset * dilation, on every axis.
struct Kernel {
  std::vector<std::vector<std::int64_t>> offsets;   // in weight order
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
};

/// All cells of a box, last axis fastest; with `cross`, only those on an axis through the centre.
std::vector<std::vector<std::int64_t>> box_offsets(const std::vector<std::int64_t>& size,
                                                   bool cross);

/// (offset, input row, output row)
using Pair = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

std::set<Pair> pairs(const Cells& in, const Cells& out, const Kernel& kernel);
/// The relation with `coarse` as `out` and `fine` as `in`; pairs are (offset, coarse, fine).
std::set<Pair> transposed_pairs(const Cells& coarse, const Cells& fine, const Kernel& kernel);

/// Output cells with at least one input, within [0, shape) where there is one.
std::set<Cell> dilating_outputs(const Cells& in, const Kernel& kernel,
                                const std::optional<Extents>& shape);
/// The coarse cells that hold an input, within [0, shape) where there is one.
std::set<Cell> cell_outputs(const Cells& in, const std::vector<std::int64_t>& stride,
                            const std::optional<Extents>& shape);
/// Every cell that a transposed convolution reaches, within [0, shape) where there is one.
std::set<Cell> generated_outputs(const Cells& coarse, const Kernel& kernel,
                                 const std::optional<Extents>& shape);

}   // namespace pumice::brute_force
