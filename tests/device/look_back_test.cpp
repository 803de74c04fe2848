// Looking back over what earlier tiles said, at any distance and while some have not spoken yet.
// Covers device/pumice/grid/look_back.h.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/grid/look_back.h>

#include "support/device_emulator.hpp"

namespace pumice::test {
namespace {

struct Looking {
  uint64_t* states;   // of `tiles` before the one that looks
  int32_t tiles;
  uint64_t* heard;   // [3, 32] by a thread, by a warp, once all have spoken
};

/// The last tile looks back while the lanes of another warp say what the silent ones hold, each
/// tile its number plus one.
PUMICE_KERNEL PUMICE_THREADS(96) void look_at_tiles(PUMICE_ARGUMENT(Looking) a) {
  if (warp_index() == 0) {
    a.heard[lane_index()] = look_back(a.states, 1, a.tiles);
  } else if (warp_index() == 1) {
    a.heard[32 + lane_index()] = warp_look_back(a.states, a.tiles);
    if (a.tiles == 0) return;
    a.heard[64 + lane_index()] = sum_through(a.states, 1, lane_index() * (a.tiles - 1) / 31);
  } else {
    for (int32_t tile = a.tiles - 1 - lane_index(); tile >= 0; tile -= 32) {
      const auto number = static_cast<uint64_t>(tile);
      if (a.states[tile] == 0) {
        say_part(a.states, 1, tile, number + 1);
        pause_polling();
      }
      say_sum(a.states, 1, tile, (number + 1) * (number + 2) / 2);
    }
  }
}

/// What a tile says: nothing yet, what it holds, or the sum with it.
enum class Said { nothing, part, sum };

std::vector<uint64_t> states_of(const std::vector<Said>& said) {
  std::vector<uint64_t> states;
  for (std::size_t tile = 0; tile < said.size(); ++tile) {
    const uint64_t part = tile + 1;
    const uint64_t sum = part * (part + 1) / 2;
    states.push_back(said[tile] == Said::nothing            ? 0
                     : said[tile] == Said::sum || tile == 0 ? kTileSaidSum<uint64_t> | sum
                                                            : kTileSaidPart<uint64_t> | part);
  }
  return states;
}

void expect_heard(const std::vector<Said>& said) {
  const auto tiles = static_cast<int32_t>(said.size());
  for (const RunOrder order : {RunOrder::ascending, RunOrder::descending, RunOrder::shuffled}) {
    std::vector<uint64_t> states = states_of(said);
    states.push_back(0);
    std::vector<uint64_t> heard(96, 77);
    emulate({.threads = 96}, look_at_tiles, Looking{states.data(), tiles, heard.data()},
            {.threads = order, .seed = 5});
    const uint64_t all = static_cast<uint64_t>(tiles) * (said.size() + 1) / 2;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(heard[lane], all);
      EXPECT_EQ(heard[32 + lane], all);
      if (tiles == 0) continue;
      const uint64_t tile = lane * (said.size() - 1) / 31;
      EXPECT_EQ(heard[64 + lane], (tile + 1) * (tile + 2) / 2);
    }
  }
}

TEST(DeviceLookBack, AddsUpPartsToTheNearestSum) {
  for (const std::size_t tiles : {0u, 1u, 2u, 15u, 16u, 17u, 32u, 33u, 127u, 128u, 129u, 300u}) {
    SCOPED_TRACE(tiles);
    for (std::size_t sum = 0; sum < tiles; sum += 1 + tiles / 7) {
      std::vector<Said> said(tiles, Said::part);
      said[sum] = Said::sum;
      expect_heard(said);
    }
    expect_heard(std::vector<Said>(tiles, Said::sum));
    expect_heard(std::vector<Said>(tiles, Said::part));   // to tile 0, whose part is its sum
  }
}

TEST(DeviceLookBack, WaitsForTilesThatHaveNotSpokenYet) {
  for (const std::size_t tiles : {1u, 16u, 33u, 129u, 300u}) {
    SCOPED_TRACE(tiles);
    expect_heard(std::vector<Said>(tiles, Said::nothing));
    for (const std::size_t every : {2u, 3u, 40u}) {
      std::vector<Said> said(tiles, Said::part);
      for (std::size_t tile = 0; tile < tiles; tile += every)
        said[tile] = Said::nothing;
      said[tiles / 3] = Said::sum;
      expect_heard(said);
    }
  }
}

}   // namespace
}   // namespace pumice::test
