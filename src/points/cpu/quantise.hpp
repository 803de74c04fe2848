// Positions in metres to integer cells, in float32 arithmetic.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::detail {

inline constexpr std::int64_t kQuantiseChunk = 4096;   // points: 48 KiB of positions
inline constexpr std::int64_t kQuantiseLanes = 24;     // floats a step: three AVX2 vectors

/// Origin and size of each lane, so that x y z x y z … needs no shuffles.
struct QuantiseLanes {
  std::array<float, kQuantiseLanes> origin{};
  std::array<float, kQuantiseLanes> size{};
};

/// The box around the cells of the points that are kept, and how many there are.
struct CellBox {
  Buffer<std::int64_t> before;   // [chunks + 1]: kept points before a chunk of kQuantiseChunk
  std::int64_t low[3] = {0, 0, 0};
  std::int64_t high[3] = {0, 0, 0};

  std::int64_t kept_points() const { return before[before.size() - 1]; }
};

/// The cells of a batch, cloud after cloud. They are worked out each time they are asked for: eight
/// points at a time that takes less time than memory to keep them in.
class Quantiser {
 public:
  Quantiser(std::span<const FeaturedCloud> clouds, const VoxelOptions& options);

  std::int64_t points() const { return starts_.back(); }
  /// UserError names the first point that has no cell.
  CellBox find_box() const;

  /// Calls visit(point, batch, cell) for the points of [begin, end) that are kept, in order.
  template <class Visit>
  void for_each_kept(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    Piece piece;
    std::int64_t batch = 0;
    for (std::int64_t first = begin; first < end; first += kPiecePoints) {
      const std::int64_t last = std::min(first + kPiecePoints, end);
      quantise(first, last, piece);
      for (std::int64_t point = first; point < last; ++point) {
        while (point >= starts_[static_cast<std::size_t>(batch) + 1])
          ++batch;
        if (options_.range && piece.kept[static_cast<std::size_t>(point - first)] == 0) continue;
        visit(point, batch, piece.cell.data() + 3 * (point - first));
      }
    }
  }

 private:
  static constexpr std::int64_t kPiecePoints = 512;   // stays in L1 with its positions
  struct Piece {
    std::array<std::int32_t, 3 * kPiecePoints> cell;   // only as much as there are points
    std::array<std::uint8_t, kPiecePoints> kept;       // only where there is a range
  };
  /// The cells of points [begin, end); false when some point has none.
  bool quantise(std::int64_t begin, std::int64_t end, Piece& piece) const;

  std::span<const FeaturedCloud> clouds_;
  const VoxelOptions& options_;
  std::vector<std::int64_t> starts_;   // [clouds + 1]
  QuantiseLanes lanes_;
};

}   // namespace pumice::detail
