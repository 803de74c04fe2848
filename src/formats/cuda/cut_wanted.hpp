// What operators take of the maps of a device, cut for many of them at once.
#pragma once

#include <optional>
#include <span>

#include <pumice/maps/kernel_map.hpp>

#include "formats/cuda/device_formats.hpp"

namespace pumice::cuda {

/// What one operator runs on, as its plan says.
struct CutWanted {
  const KernelMap* map = nullptr;
  bool is_transposed = false;       // of the map's inputs instead of its outputs
  std::optional<TileCut> tiles{};   // absent: the list of pairs, one for both directions
};

/// Makes what is not there yet. A map by itself takes some seven launches, each too small to fill
/// a GPU; up to 16 cuts together take as many. All maps belong to one stream, on which the work is
/// enqueued.
void cut_wanted(std::span<const CutWanted> wanted);

}   // namespace pumice::cuda
