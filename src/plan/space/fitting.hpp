// What the tables of tiles and of weight gradients do alike: a specification gets as many stages as
// fit, and is a candidate if any do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <pumice/shared/tile_limits.h>

namespace pumice::cuda {

inline constexpr std::int32_t kAny = 1 << 30;   // of a range of channels: no upper end

constexpr std::int32_t round_up(std::int32_t value, std::int32_t step) {
  return divide_up(value, step) * step;
}

/// As many stages as fit, up to `most`; fewer than two is no pipeline. `bytes_of(spec)` is the
/// shared memory of a block.
template <class Spec, class Bytes>
bool fit_stages(Spec& spec, std::uint32_t architecture, std::int32_t most, Bytes&& bytes_of) {
  const std::int32_t room =
      (block_shared_limit(architecture) + kReservedShared) / spec.blocks_per_sm - kReservedShared;
  for (spec.stages = most; spec.stages >= 2; --spec.stages)
    if (bytes_of(spec) <= room) return true;
  return false;
}

/// Adds `spec` with up to `most` stages, and fewer blocks a multiprocessor where that many do not
/// fit; nothing where it cannot be built.
template <class Spec, class Bytes>
void keep_fitting(std::vector<Spec>& specs, Spec spec, std::uint32_t architecture,
                  std::int32_t most, Bytes&& bytes_of) {
  while (!fit_stages(spec, architecture, most, bytes_of) && spec.blocks_per_sm > 1)
    --spec.blocks_per_sm;
  if (!fit_stages(spec, architecture, most, bytes_of) || !is_valid(spec)) return;
  if ((architectures(spec) & architecture) == 0) return;
  if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
}

}   // namespace pumice::cuda
