// What convolutions asked of the maps of one pass, so that the next pass can make all of it at
// once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <pumice/maps/kernel_map.hpp>

namespace pumice {

/// On a device, what convolutions run on is made of a map when it is first asked for: some twelve
/// launches a map, each too small to fill a GPU. Of up to eight maps at once it takes as many
/// launches as of one. Threads that share one take turns to call it (in Python by its lock, which
/// allocations may give away: so what `prepare` reads stays as it is until it is done).
class MapUses {
 public:
  MapUses();
  MapUses(MapUses&& other) noexcept;
  MapUses& operator=(MapUses&& other) noexcept;
  ~MapUses();

  /// Remembers what was asked of each map until now, by its place in the list. Maps on the CPU have
  /// nothing to remember.
  void learn(std::span<const KernelMap* const> maps);
  /// Makes of each map what was asked of the one in its place, unless it is there already: a guess,
  /// which costs time where it is wrong, and nothing else. All maps belong to one stream, on which
  /// the work is enqueued.
  void prepare(std::span<const KernelMap* const> maps) const;

 private:
  struct Use;
  std::shared_ptr<const std::vector<Use>> uses_;   // another one each time
};

}   // namespace pumice
