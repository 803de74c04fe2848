// The maps of a network, each built once: keyed by the coordinate sets themselves and the window,
// never by a name someone has to keep right.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <pumice/maps/build.hpp>

namespace pumice {

class MapsAhead;

/// Not thread-safe: one for each forward pass (or for each tensor and its descendants).
class MapCache {
 public:
  enum class Kind : unsigned char { submanifold, dilating, cell, transposed, generative };
  /// What a map was made from. It owns the sets, so that no new set can take their address.
  struct Key {
    Kind kind;
    CoordinateSetPtr in;
    CoordinateSetPtr out;   // null where the map makes its own outputs
    KernelWindow window;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    KernelMapPtr map;
  };

  KernelMapPtr submanifold(const CoordinateSetPtr& set, const KernelWindow& window);
  KernelMapPtr strided(const CoordinateSetPtr& in, const KernelWindow& window,
                       StridedOutputs outputs);
  KernelMapPtr transposed(const CoordinateSetPtr& coarse, const CoordinateSetPtr& fine,
                          const KernelWindow& window);
  KernelMapPtr generative(const CoordinateSetPtr& coarse, const KernelWindow& window);

  /// The strided map that made `coarse`: read from the other side, what an inverse convolution goes
  /// back by, and a transposed one without a search. Null where none did.
  KernelMapPtr strided_to(const CoordinateSetPtr& coarse) const;
  /// The same, where it is through `window`, and from `fine` unless that is null.
  KernelMapPtr strided_to(const CoordinateSetPtr& coarse, const KernelWindow& window,
                          const CoordinateSetPtr& fine = nullptr) const;

  /// Milliseconds spent building maps so far, and how many were built.
  double build_ms() const { return build_ms_; }
  std::int64_t built() const { return static_cast<std::int64_t>(entries_.size()); }
  /// In the order they were built.
  std::vector<KernelMapPtr> maps() const;
  const std::vector<Entry>& entries() const { return entries_; }
  /// A map that was made elsewhere, to be found from here on.
  void add(Entry made) { entries_.push_back(std::move(made)); }

  /// Whom maps are taken from, where it has made them already, and who is told of all that are
  /// asked for from here on.
  void set_ahead(std::shared_ptr<MapsAhead> ahead) { ahead_ = std::move(ahead); }
  const std::shared_ptr<MapsAhead>& ahead() const { return ahead_; }

 private:
  template <class Build> KernelMapPtr find_or_build(const Key& key, Build&& build);

  std::shared_ptr<MapsAhead> ahead_;
  std::vector<Entry> entries_;   // some dozen in a network, so looking through them is quick
  double build_ms_ = 0;
};

/// Maps that are made before anybody asks for them.
class MapsAhead {
 public:
  MapsAhead() = default;
  MapsAhead(const MapsAhead&) = delete;
  MapsAhead& operator=(const MapsAhead&) = delete;
  virtual ~MapsAhead() = default;

  /// Gives the map away; null: it was not made.
  virtual KernelMapPtr take(const MapCache::Key& key) = 0;
  /// Told of every map that was asked for and was not given away here.
  virtual void note(const MapCache::Entry& made) = 0;
};

}   // namespace pumice
