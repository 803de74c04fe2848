// What somebody asked to have cut of a map, as values that outlive it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "formats/cuda/device_formats.hpp"

namespace pumice::cuda {

/// Which tiles of a map somebody wants.
struct TilesWanted {
  bool is_transposed = false;   // of the map's inputs instead of its outputs
  TileCut cut{};

  friend bool operator==(const TilesWanted&, const TilesWanted&) = default;
};

/// Passes that something is remembered for when nobody asks for it. Gradients come after the next
/// pass has begun where batches are accumulated, and not at all while a network is evaluated.
inline constexpr int kPassesRemembered = 2;

/// Of one map in one pass. Any thread may use it.
class CutNotes {
 public:
  struct Remembered {
    std::vector<TilesWanted> tiles;
    bool pairs = false;
  };

  CutNotes() = default;
  /// Of the pass after one with these `earlier` notes, which are `age` passes older by that: 1 or
  /// 0.
  CutNotes(const CutNotes& earlier, int age) {
    const std::scoped_lock lock(earlier.mutex_);
    for (const Tiles& tiles : earlier.tiles_) {
      if (tiles.unasked + age <= kPassesRemembered)
        tiles_.push_back({tiles.wanted, tiles.unasked + age});
    }
    pairs_unasked_ = std::min(earlier.pairs_unasked_ + age, kPassesRemembered + 1);
  }
  CutNotes(const CutNotes&) = delete;
  CutNotes& operator=(const CutNotes&) = delete;

  void ask_for_tiles(const TilesWanted& wanted) {
    const std::scoped_lock lock(mutex_);
    const auto known = std::ranges::find(tiles_, wanted, &Tiles::wanted);
    if (known == tiles_.end()) {
      tiles_.push_back({wanted, 0});
    } else {
      known->unasked = 0;
    }
  }
  void ask_for_pairs() {
    const std::scoped_lock lock(mutex_);
    pairs_unasked_ = 0;
  }
  Remembered remembered() const {
    const std::scoped_lock lock(mutex_);
    Remembered all;
    all.pairs = pairs_unasked_ <= kPassesRemembered;
    for (const Tiles& tiles : tiles_)
      all.tiles.push_back(tiles.wanted);
    return all;
  }

 private:
  struct Tiles {
    TilesWanted wanted;
    int unasked = 0;   // passes since somebody asked
  };

  mutable std::mutex mutex_;
  std::vector<Tiles> tiles_;   // a handful
  int pairs_unasked_ = kPassesRemembered + 1;
};

}   // namespace pumice::cuda
