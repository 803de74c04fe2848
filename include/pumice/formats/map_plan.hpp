// The sets and maps of a network as a value: learned from a pass, made again for any other scan by
// launches that ask the host nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pumice/coords/voxel_sites.hpp>
#include <pumice/maps/map_cache.hpp>

namespace pumice {

namespace cuda {
class MapPlan;
}

/// How much larger than the learned scan others may be.
struct PlanRoom {
  std::int64_t rows = 0;   // of the input set
  CoordinateBounds bounds{};
  /// Sets and maps that follow from the input get room in proportion, times this: scans of one
  /// size differ in how dense they are.
  double margin = 1.25;
  /// Of points that the input set is made of, 0 where it is made of coordinates: no set gets room
  /// for just as many.
  std::int64_t points = 0;
};

/// Copies share one plan. Any thread may use it.
class MapPlan {
 public:
  /// Learns from the maps of a pass over `input`, on its stream, which is waited for. `input` may
  /// be one that an earlier plan made. Tiles and lists of pairs that no convolution or gradient of
  /// that pass asked for are left out, and made where a later pass asks, in room for all there
  /// could be. UserError for sets on the CPU, for room that does not hold the pass, and for maps of
  /// sets that do not follow from `input`. Of an `earlier` plan of the same sets and maps each
  /// keeps the room that it has more of.
  MapPlan(const MapCache& maps, const CoordinateSetPtr& input, const PlanRoom& room,
          const MapPlan* earlier = nullptr);

  struct Made {
    CoordinateSetPtr input;
    std::shared_ptr<MapCache> maps;
    Tensor row_of{};   // of points: i32 [points], the row of each, -1 for one that is left out
  };
  /// The sets and maps of `coordinates`, int32 [room.rows, 1 + D] on the plan's device, of which
  /// `rows` are in use. Never waits, and enqueues the same launches each time, so that a graph can
  /// hold them. More rows than there is room for, and coordinates out of bounds, are reported to
  /// the stream, whose next wait raises UserError; what follows from them is no number.
  Made make(const Tensor& coordinates, const RowCount& rows) const;
  /// The same of points, f32 [P, 3 or more] on the plan's device, of which `count` are in use, with
  /// their batch items, i32 [P], undefined where all are 0. The input are their voxels, as
  /// `voxel_sites` makes them with the size and the range of `options`; batch size and spatial
  /// shape are those of the scan that was learned from. More voxels than there is room for, and
  /// points without a cell or, where there is neither a range nor a spatial shape, far out of
  /// bounds, are reported likewise. `row_of`: where that goes. Never waits.
  Made make(const ConstTensorView& points, const ConstTensorView& batch, const RowCount& count,
            const VoxelSiteOptions& options, const Place& row_of = {}) const;

  /// The room of each set, the input first.
  std::vector<std::int64_t> capacities() const;

 private:
  std::shared_ptr<const cuda::MapPlan> plan_;
};

}   // namespace pumice
