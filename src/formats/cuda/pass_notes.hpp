// What a pass asked for, as values: which sets follow from which, how large they were, which maps
// there are between them, and what was cut of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <pumice/maps/map_cache.hpp>

#include "coords/cuda/device_set.hpp"
#include "formats/cuda/cut_notes.hpp"

namespace pumice::cuda {

/// Sets are numbered, the one that a pass begins with is 0. Any thread may use it.
class PassNotes {
 public:
  struct SetNote {
    std::size_t from = 0;
    MapCache::Kind kind = MapCache::Kind::cell;
    KernelWindow window;
    double rows = 0;   // for each of set 0, the most of late
    double blocks = 0;
    double root_rows = 0;   // of the pass that said so
    int unasked = 0;        // passes since somebody asked
  };
  struct MapNote {
    MapCache::Kind kind = MapCache::Kind::submanifold;
    std::size_t in = 0;
    std::size_t out = 0;
    bool key_names_out = false;
    KernelWindow window;
    bool outputs_are_finer = false;
    bool has_identity_offset = false;
    std::shared_ptr<CutNotes> cuts{};
    int unasked = 0;
  };
  struct Steps {
    std::vector<SetNote> sets;   // [i] is set i + 1
    std::vector<MapNote> maps;
  };

  PassNotes() = default;
  /// Of the pass after one with these `earlier` notes. What that did not ask for is a pass older,
  /// unless it goes on and has asked for no set so far: a stem may see several inputs before the
  /// rest of a network does.
  explicit PassNotes(const PassNotes& earlier);
  PassNotes& operator=(const PassNotes&) = delete;

  Steps steps() const;
  /// The number of the set; absent where there are too many to be noted.
  std::optional<std::size_t> ask_for_set(std::size_t from, const MapCache::Entry& made);
  /// Where to note what is cut of it; null likewise.
  std::shared_ptr<CutNotes> ask_for_map(std::size_t in, std::size_t out,
                                        const MapCache::Entry& made);
  void ask_for_map(std::size_t number);
  /// Nobody is left to ask for anything.
  void end();
  /// A set had that many rows and blocks where set 0 had `root_rows`. Of a much smaller scan
  /// nothing is learned but what it lacked: a handful of sites far from each other would have
  /// large scans take many times the room.
  void learn_size(std::size_t set, const SetCapacity& size, double root_rows);

 private:
  SetNote& set(std::size_t number) { return steps_.sets[number - 1]; }

  mutable std::mutex mutex_;
  Steps steps_;
  bool asks_for_sets_ = false;
  bool has_ended_ = false;
};

/// The room that a set gets in a pass that begins with `root_rows`, at most `most`.
SetCapacity learned_room(const PassNotes::SetNote& note, double root_rows, std::int64_t most);
/// Whether sizes of the set say something about a pass that begins with `root_rows`: a scan that is
/// much larger than those seen is first of its kind.
bool is_learned_for(const PassNotes::SetNote& note, double root_rows);

}   // namespace pumice::cuda
