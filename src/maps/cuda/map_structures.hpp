// What convolutions on a device run on, made from a kernel map when first asked for and kept with
// it: tiles of outputs, in either direction.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <pumice/maps/kernel_map.hpp>

#include "maps/cuda/build_maps.hpp"

namespace pumice::cuda {

/// Any thread may ask; work is enqueued on the stream of the map's sets.
class MapStructures {
 public:
  explicit MapStructures(bool outputs_are_finer) : outputs_are_finer_(outputs_are_finer) {}

  /// Tiles of the rows that `view` calls its outputs. `view` is of the map that owns this.
  const TileMapRef& tiles(const KernelMapView& view, std::int32_t tile_rows, std::int32_t splits);

 private:
  struct Tiles {
    bool is_transposed;
    std::int32_t tile_rows;
    std::int32_t splits;
    DeviceMap map;
    TileMapRef ref;
  };

  const bool outputs_are_finer_;
  std::mutex mutex_;
  std::optional<DeviceWindow> window_;
  std::vector<std::unique_ptr<Tiles>> tiles_;   // a handful
};

}   // namespace pumice::cuda
