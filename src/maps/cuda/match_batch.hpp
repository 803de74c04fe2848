// Up to 16 maps that are searched together: their tasks, their memory, their launches. What is
// found is cut in stage `formats`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pumice/maps/match_arguments.h>

#include "coords/cuda/fill_list.hpp"
#include "jit/kernel_runner.hpp"
#include "maps/cuda/device_window.hpp"

namespace pumice::cuda {

/// A map from `in` to `out` through `window`, to be searched; the sets and the window outlive that.
struct MapSearch {
  CoordinateSetRef in{};
  CoordinateSetRef out{};
  const DeviceWindow* window = nullptr;
  Reach reach = Reach::out_to_in;
  std::string name = "map";   // who is named when the room does not suffice
};

bool same_set(const CoordinateSetRef& a, const CoordinateSetRef& b);
bool same_map(const MapSearch& a, const MapSearch& b);
/// How the keys of the sets hang together.
KeyRelation key_relation(const MapSearch& map);

/// Which outputs have which offsets, in 4 bytes a row for up to 32 offsets. Which inputs those lead
/// to is kept only until the batch that was searched is cut: 4 bytes a row and offset.
struct MatchedMap {
  Buffer<std::uint32_t> mask;
  Buffer<std::uint32_t> offset_count;
  Buffer<OffsetStep> step;
};

class MatchBatchBuilder {
 public:
  /// `fill` runs before the search is launched, and outlives this.
  MatchBatchBuilder(jit::KernelRunner& runner, FillList& fill) : runner_(runner), fill_(fill) {}

  /// Whether there is room for another map and its sets.
  bool takes(const MapSearch& map) const;
  /// A map to be searched; its memory goes to `match`, and what is found of inputs stays here.
  MatchTask add(const MapSearch& map, MatchedMap& match);
  /// A map that was searched before, with its sets among those of this batch.
  MatchTask searched_before(const MapSearch& map, MatchedMap& match);
  /// Tasks name their sets by these.
  std::span<const CoordinateSetRef> sets() const {
    return {batch_.set, static_cast<std::size_t>(sets_)};
  }
  /// One launch, after the fill.
  void launch();

 private:
  int find_set(const CoordinateSetRef& set) const;
  int add_set(const CoordinateSetRef& set);

  jit::KernelRunner& runner_;
  FillList& fill_;
  MatchBatch batch_{};
  int sets_ = 0;
  std::vector<Buffer<std::int32_t>> found_;
};

}   // namespace pumice::cuda
