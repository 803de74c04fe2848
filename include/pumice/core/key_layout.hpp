// Choosing how coordinates become keys: as few bits as the bounds allow. Both voxelisation and
// coordinate sets ask here, so that voxels in key order are in key order for the set made from
// them.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/shared/key_layout.h>

namespace pumice {

/// How often a layout can be halved unless someone asks for more: strides up to 64.
inline constexpr int kDefaultHalvings = 6;

/// The smallest layout that holds [low, high] on every axis and batches [0, batch_size), able to be
/// halved `levels` times. UserError when that takes more than 63 bits.
KeyLayout layout_for_bounds(int dimension, std::span<const std::int64_t> low,
                            std::span<const std::int64_t> high, std::int64_t batch_size,
                            int levels = kDefaultHalvings);

}   // namespace pumice
