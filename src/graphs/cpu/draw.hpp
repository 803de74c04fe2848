// Draws numbers below a limit, each as likely as the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/random.hpp>

namespace pumice::cpu {

/// Scratch that draws share, one for a thread.
using DrawScratch = std::vector<std::int64_t>;

/// Fills `drawn` with different numbers below `limit`, ascending; there are that many. Every choice
/// of so many is as likely as any other. O(k log k) for k draws.
void draw_different(Random random, std::int64_t limit, std::span<std::int64_t> drawn,
                    DrawScratch& scratch);

/// The same with numbers that may repeat, each draw apart from the others.
void draw_any(Random random, std::int64_t limit, std::span<std::int64_t> drawn);

}   // namespace pumice::cpu
