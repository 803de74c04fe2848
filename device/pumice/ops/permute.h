// Copies with axes in another order, many of them in a launch: weights of other libraries' layers
// to the order that kernels read, and their gradients back.
#pragma once

#include <pumice/ops/permute_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// A tile on its way, turned in shared memory: its reads and its writes are both of neighbours.
struct PermuteScratch {
  uint32_t word[kPermuteTile][kPermuteTile + 1];   // a column more, so that no bank has two rows
};

/// Where a tile, or an element, starts.
struct PermutePlace {
  int64_t from = 0;
  int64_t to = 0;
};

/// Of number `index` of all combinations of the axes but those two.
PUMICE_DEVICE PermutePlace permute_place(const PermuteArguments& a, int64_t index, int32_t but,
                                         int32_t and_but) {
  PermutePlace place;
  int64_t pitch = 1;
  PUMICE_UNROLL
  for (int32_t axis = kMaxPermutedAxes - 1; axis >= 0; --axis) {
    if (axis != but && axis != and_but) {
      const int64_t coordinate = index % a.extent[axis];
      index /= a.extent[axis];
      place.from += coordinate * a.stride[axis];
      place.to += coordinate * pitch;
    }
    pitch *= a.extent[axis];
  }
  return place;
}

/// Where one axis runs fastest in both: element by element.
template <class Bits> PUMICE_DEVICE void copy_permuted(const PermuteArguments& a) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < kMaxPermutedAxes; ++axis)
    elements *= a.extent[axis];
  const Bits* const from = static_cast<const Bits*>(a.from);
  Bits* const to = static_cast<Bits*>(a.to);
  const int64_t step = int64_t{grid_size()} * block_size();
  for (int64_t index = global_thread_index(); index < elements; index += step)
    to[index] = from[permute_place(a, index, -1, -1).from];
}

/// Tiles of the axes that run fastest in `from` (x of a tile) and in `to` (y).
template <class Bits>
PUMICE_DEVICE void turn_tiles(const PermuteArguments& a, PermuteScratch& scratch) {
  constexpr int32_t last = kMaxPermutedAxes - 1;
  constexpr int32_t step = kPermuteThreads / kPermuteTile;
  const int32_t width = a.extent[a.fastest];
  const int32_t height = a.extent[last];
  const int64_t across = divide_up(width, kPermuteTile);
  const int64_t of_plane = across * divide_up(height, kPermuteTile);
  int64_t planes = 1;
  int64_t pitch = 1;   // of x in `to`
  for (int32_t axis = 0; axis < kMaxPermutedAxes; ++axis) {
    if (axis != a.fastest && axis != last) planes *= a.extent[axis];
    if (axis > a.fastest) pitch *= a.extent[axis];
  }
  const int32_t lane = thread_index() % kPermuteTile;
  const int32_t line = thread_index() / kPermuteTile;
  for (int64_t tile = block_index(); tile < planes * of_plane; tile += grid_size()) {
    const PermutePlace place = permute_place(a, tile / of_plane, a.fastest, last);
    const int64_t in_plane = tile % of_plane;
    const auto x0 = static_cast<int32_t>(in_plane % across) * kPermuteTile;
    const auto y0 = static_cast<int32_t>(in_plane / across) * kPermuteTile;
    const Bits* const from = static_cast<const Bits*>(a.from) + place.from;
    Bits* const to = static_cast<Bits*>(a.to) + place.to;
    for (int32_t i = line; i < kPermuteTile; i += step) {
      if (x0 + lane < width && y0 + i < height)
        scratch.word[i][lane] = from[x0 + lane + (y0 + i) * a.stride[last]];
    }
    block_sync();
    for (int32_t i = line; i < kPermuteTile; i += step) {
      if (x0 + i < width && y0 + lane < height)
        to[(x0 + i) * pitch + y0 + lane] = static_cast<Bits>(scratch.word[lane][i]);
    }
    block_sync();
  }
}

/// A row of the grid for each copy.
PUMICE_KERNEL PUMICE_THREADS(kPermuteThreads) void permute_axes(
    PUMICE_ARGUMENT(PermutationsArguments) arguments) {
  wait_for_previous();
  PUMICE_BLOCK_SHARED(PermuteScratch, scratch);
  const PermuteArguments& a = arguments.copy[block_index_y()];
  if (a.fastest != kMaxPermutedAxes - 1) {
    if (a.element_bytes == 2)
      turn_tiles<uint16_t>(a, scratch);
    else
      turn_tiles<uint32_t>(a, scratch);
    return;
  }
  switch (a.element_bytes) {
    case 16: return copy_permuted<Words<4>>(a);
    case 8: return copy_permuted<Words<2>>(a);
    case 4: return copy_permuted<uint32_t>(a);
    default: return copy_permuted<uint16_t>(a);
  }
}

}   // namespace pumice
