// What the passes of a network ask of sets and maps, remembered from one to the next: then all of
// them are made together, with one wait instead of one for each set.
#pragma once

#include <cstdint>
#include <memory>

#include <pumice/core/device.hpp>
#include <pumice/maps/map_cache.hpp>

namespace pumice {

/// Belongs to whoever asks for the first map of a pass, a layer. Any thread may use it; it keeps no
/// set, no map and no memory of a device.
class PassMemory {
 public:
  /// What follows a pass. Passes with gradients and passes without remember apart, since an
  /// evaluation asks for nothing that gradients run on, however long it takes.
  enum class Followed : std::uint8_t { by_nothing, by_gradients };

  PassMemory();

  /// Before a map of `root` is asked of `maps`. If that is the first one there, of sites on a
  /// device whose number the host knows, a pass begins: it is noted, and if the pass before made
  /// sets, those and their maps, as far as that pass asked for them, are made now, in room that is
  /// a margin larger than what was needed in proportion, and `maps` gives them to whoever asks.
  /// Then the host waits once, for all counts. Where the room does not suffice, nothing was made,
  /// and each set is waited for by itself when it is asked for, as in a first pass. Raises what
  /// the stream of `root` has reported, and what memory is short of; then nothing is remembered, so
  /// that the next pass is a first one. Does nothing where the host must not wait for that or for
  /// `caller`.
  void begin(MapCache& maps, const CoordinateSetPtr& root, StreamView caller,
             Followed followed) const;
  /// Whether `begin` would have something to do for these maps.
  static bool begins(const MapCache& maps);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}   // namespace pumice
