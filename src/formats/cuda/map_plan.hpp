// The sets and maps of a network as a plan: learned from one pass, then made for any other scan by
// one sequence of launches that asks the host nothing.
//
//      pass over one scan                     for every other scan
//   set 0 ──map──► set 1 ──map──► set 2       set 0, 1, 2: one sort, cut into levels
//     └─map─┐        └─map─┐                  all maps: batches of up to 16
//   sizes + margin = capacities               counts stay on the device
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pumice/formats/map_plan.hpp>
#include <pumice/maps/map_cache.hpp>

#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/device_set.hpp"
#include "coords/cuda/voxel_sites.hpp"
#include "formats/cuda/map_formats.hpp"

namespace pumice::cuda {

class MapPlan {
 public:
  /// Learns from the maps of a pass over `input`, on its stream, which is waited for. Tiles and
  /// lists of pairs that no convolution or gradient of that pass asked for are left out.
  /// Of an `earlier` plan of the same sets and maps each keeps the room that it has more of.
  MapPlan(const MapCache& maps, const CoordinateSetPtr& input, const PlanRoom& room,
          const MapPlan* earlier = nullptr);

  struct Made {
    CoordinateSetPtr input;
    std::shared_ptr<MapCache> maps;
    Tensor row_of{};   // of points
  };
  /// The sets and maps of `coordinates`, int32 [room.rows, 1 + D] on the plan's device, of which
  /// `rows` are in use. Only enqueues, the same launches each time.
  Made make(const Tensor& coordinates, const RowCount& rows) const;
  /// The same of points: see pumice::MapPlan.
  Made make(const ConstTensorView& points, const ConstTensorView& batch, const RowCount& count,
            const VoxelSiteOptions& options, const Place& row_of) const;

  /// The room of each set, the input first.
  std::vector<std::int64_t> capacities() const;

 private:
  using Kind = MapCache::Kind;
  /// A set that a map led to; sets are numbered, the input is 0.
  struct SetStep {
    std::size_t from = 0;
    Kind kind = Kind::cell;
    KernelWindow window;
    CoordinateOptions options;
    SetCapacity room;
    bool is_level = false;   // made with the input, by the same sort
  };
  struct TilesStep {
    TilesWanted wanted;
    std::int64_t entry_capacity = 0;
  };
  struct MapStep {
    Kind kind = Kind::submanifold;
    std::size_t in = 0;
    std::size_t out = 0;
    bool key_names_out = false;
    KernelWindow window;
    std::shared_ptr<const DeviceWindow> on_device;
    bool outputs_are_finer = false;
    bool has_identity_offset = false;
    std::vector<TilesStep> tiles{};
    std::optional<std::int64_t> pair_capacity{};   // of the list that gradients of weights sum over
  };

  bool same_steps(const MapPlan& other) const;
  void widen(const MapPlan& earlier);
  static std::int64_t most_entries(const TilesWanted& wanted, std::span<const TilesStep> tiles);
  void tell_apart();
  void learn_levels();
  /// What is cut from a map that was made by a step.
  static std::vector<CutRequest> cuts_of(const MapStep& step, MapFormats& formats);
  const DeviceWindow& window_of_set(std::size_t set) const;
  std::int64_t rows_of_set(std::size_t set) const;
  /// What the maps want zeroed, which the first launch of the sets zeroes.
  std::int64_t bytes_to_zero() const;
  Made make_maps(const std::vector<CoordinateSetPtr>& levels, StreamView stream,
                 const std::shared_ptr<ArenaAllocator>& zeroed) const;
  CoordinateSetPtr make_set(const std::vector<CoordinateSetPtr>& sets, std::size_t number) const;

  PlanRoom room_;
  PlannedCoordinates input_;
  std::vector<SetStep> sets_;   // [i] is set i + 1
  std::vector<MapStep> maps_;
  std::int64_t zeroed_bytes_ = 0;
};

}   // namespace pumice::cuda
