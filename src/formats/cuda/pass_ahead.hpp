// The sets and maps of a pass, made when it begins as an earlier pass asked for them.
//
//   root ──► set 1 ──► set 2      in learned room, no wait
//     │map     │map      │map     searched and ordered: how many entries and pairs there are
//     └────────┴─────────┴──────► one wait for all counts; then tiles and pairs, as many
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include <pumice/maps/map_cache.hpp>

#include "formats/cuda/pass_notes.hpp"

namespace pumice::cuda {

/// Used with the cache that it belongs to, one thread at a time.
class PassAhead final : public MapsAhead {
 public:
  /// Makes what `notes` remember, and notes in them what is asked for.
  PassAhead(std::shared_ptr<PassNotes> notes, const CoordinateSetPtr& root);
  ~PassAhead() override { notes_->end(); }

  KernelMapPtr take(const MapCache::Key& key) override;
  void note(const MapCache::Entry& made) override;

 private:
  struct Ready {
    MapCache::Entry entry;
    std::size_t number = 0;   // among the maps of the notes
  };

  void make(const CoordinateSetPtr& root, const PassNotes::Steps& steps);

  std::shared_ptr<PassNotes> notes_;
  double root_rows_;
  /// Sets of the pass. Entries of the cache and `ready_` keep them.
  std::unordered_map<const CoordinateSet*, std::size_t> number_;
  std::vector<CoordinateSetPtr> sets_;   // that were made ahead, so that no other takes an address
  std::vector<Ready> ready_;
};

}   // namespace pumice::cuda
