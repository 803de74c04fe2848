// The skeletons of tile kernels on the host, against float64 loops: every way of gathering,
// multiplying and storing.
// Covers tile_fma, tile_mma_sync and tile_wgmma of device/pumice/skeleton.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <gtest/gtest.h>

#include "kernels/emulated_tile.hpp"
#include "kernels/small_specs.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr TileSpec warpgroup_spec(std::int32_t in, std::int32_t out, ElementType operand) {
  TileSpec spec = small_tile(in, out, operand);
  spec.instruction = Instruction::wgmma;
  spec.tile_rows = 128;
  spec.tile_columns = 24;
  spec.row_warps = 8;
  return spec;
}

TEST(TileMmaSync, multiplies_half_types) {
  expect_convolves<small_tile(32, 32, ElementType::f16)>(small_map().view());
  expect_convolves<small_tile(32, 32, ElementType::bf16)>(small_map().view(), RunOrder::shuffled);
}

TEST(TileMmaSync, multiplies_tf32) {
  expect_convolves<small_tile(16, 32, ElementType::tf32)>(small_map().view());
}

TEST(TileMmaSync, takes_any_number_of_channels) {
  expect_convolves<small_tile(3, 20, ElementType::f16)>(small_map().view());     // rows of 6 bytes
  expect_convolves<small_tile(5, 33, ElementType::bf16)>(small_map().view());    // two column tiles
  expect_convolves<small_tile(4, 16, ElementType::f16)>(small_map().view());     // rows of 8 bytes
  expect_convolves<small_tile(50, 36, ElementType::bf16)>(small_map().view());   // 100: two chunks
  expect_convolves<small_tile(5, 3, ElementType::tf32)>(small_map().view());     // rows of 20 bytes
}

TEST(TileMmaSync, skips_blocks_of_tall_tiles) {
  constexpr TileSpec kTall = changed(small_tile(32, 16, ElementType::f16), [](TileSpec& spec) {
    spec.tile_rows = 256;
    spec.tile_columns = 16;
    spec.row_warps = 4;
    spec.stages = 2;
  });
  const SyntheticMap sparse = synthetic_map(27, 400, 430, 0.05, true, 2);
  expect_convolves<kTall>(sparse.view(), RunOrder::descending);
}

TEST(TileMmaSync, shares_columns_between_warps) {
  constexpr TileSpec kWide = changed(small_tile(48, 64, ElementType::f16), [](TileSpec& spec) {
    spec.tile_columns = 64;
    spec.tile_depth = 48;   // three sub-tiles of 32 bytes
    spec.column_warps = 2;
  });
  expect_convolves<kWide>(small_map().view(), RunOrder::shuffled);
}

TEST(TileMmaSync, multiplies_groups_apart) {
  constexpr TileSpec kGroups = changed(small_tile(16, 24, ElementType::f16), [](TileSpec& spec) {
    spec.groups = 3;
    spec.tile_depth = 16;
  });
  expect_convolves<kGroups>(small_map().view());
}

TEST(TileMmaSync, stores_fp32_of_half_operands) {
  constexpr TileSpec kWideOutput = changed(small_tile(16, 24, ElementType::f16),
                                           [](TileSpec& spec) { spec.output = ElementType::f32; });
  expect_convolves<kWideOutput>(small_map().view());
}

constexpr TileSpec lane_spec(std::int32_t in, std::int32_t out) {
  return small_tile(in, out, ElementType::f32);
}

constexpr TileSpec direct_spec(std::int32_t in, std::int32_t out, ElementType operand) {
  TileSpec spec = small_tile(in, out, operand);
  spec.resident_offsets = 27;
  spec.tile_depth = in <= 16 ? 16 : 32;
  spec.tile_columns = divide_up(out, 16) * 16;
  return spec;
}

TEST(TileDirect, keeps_weights_and_goes_on_from_tile_to_tile) {
  expect_convolves<direct_spec(16, 16, ElementType::f16)>(small_map().view(), RunOrder::shuffled);
  expect_convolves<direct_spec(32, 32, ElementType::bf16)>(small_map().view());
  expect_convolves<changed(direct_spec(32, 16, ElementType::f16), [](TileSpec& spec) {
    spec.tile_rows = 128;
    spec.row_warps = 8;   // 16 rows a warp
    spec.stages = 4;
  })>(small_map().view());
}

TEST(TileDirect, takes_narrow_rows) {
  expect_convolves<direct_spec(4, 32, ElementType::f16)>(small_map().view());
  expect_convolves<direct_spec(5, 16, ElementType::bf16)>(small_map().view());
  expect_convolves<direct_spec(24, 7, ElementType::f16)>(small_map().view());
}

TEST(TileFma, multiplies_fp32) {
  expect_convolves<lane_spec(16, 32)>(small_map().view(), RunOrder::shuffled);
  expect_convolves<lane_spec(3, 20)>(small_map().view());
  expect_convolves<changed(lane_spec(40, 70), [](TileSpec& spec) {
    spec.tile_rows = 128;
    spec.tile_columns = 64;
    spec.column_warps = 2;
  })>(small_map().view());
}

TEST(TileWgmma, multiplies_every_width_of_rows) {
  expect_convolves<warpgroup_spec(32, 24, ElementType::f16)>(small_map().view());
  expect_convolves<changed(warpgroup_spec(128, 24, ElementType::bf16),
                           [](TileSpec& spec) { spec.tile_depth = 64; })>(small_map().view());
  expect_convolves<changed(warpgroup_spec(48, 40, ElementType::f16), [](TileSpec& spec) {
    spec.tile_depth = 48;
    spec.tile_columns = 40;
  })>(small_map().view(), RunOrder::shuffled);
  expect_convolves<warpgroup_spec(8, 30, ElementType::tf32)>(small_map().view());
}

TEST(TileWgmma, pads_channels) {
  expect_convolves<warpgroup_spec(40, 37, ElementType::bf16)>(small_map().view());
}

/// Masks of the two warpgroups differ, so that each skips what the other needs, for longer than the
/// ring is.
TEST(TileWgmma, warpgroups_skip_stages_of_each_other) {
  SyntheticMap map = synthetic_map(27, 128, 128, 0, true, 3);
  map.in.clear();
  map.out.clear();
  map.offset_begin = {0};
  for (std::int32_t k = 0; k < 27; ++k) {
    for (std::int32_t row = 0; row < 64; ++row) {
      if ((row + k) % 5 == 0) continue;
      map.in.push_back(row + 13);
      map.out.push_back(k % 9 < 6 ? row : row + 64);
    }
    map.offset_begin.push_back(static_cast<std::int64_t>(map.in.size()));
  }
  constexpr TileSpec kShortRing =
      changed(warpgroup_spec(32, 24, ElementType::f16), [](TileSpec& spec) { spec.stages = 2; });
  expect_convolves<kShortRing>(map.view(), RunOrder::ascending);
  expect_convolves<kShortRing>(map.view(), RunOrder::descending);
}

/// Only some blocks of a tile have an offset; what lies in shared memory for the others is not to
/// be multiplied.
SyntheticMap blocks_apart(std::int32_t rows) {
  SyntheticMap map = synthetic_map(27, rows, rows, 0, true, 3);
  map.in.clear();
  map.out.clear();
  map.offset_begin = {0};
  for (std::int32_t k = 0; k < 27; ++k) {
    for (std::int32_t row = 0; row < rows; ++row) {
      if ((k >> (row / 64 % 4) & 1) == 0) continue;
      map.in.push_back((row * 7 + k) % rows);
      map.out.push_back(row);
    }
    map.offset_begin.push_back(static_cast<std::int64_t>(map.in.size()));
  }
  return map;
}

TEST(TileBlocks, are_multiplied_only_where_they_were_gathered) {
  const SyntheticMap map = blocks_apart(256);
  constexpr TileSpec kTwoBlocks =
      changed(warpgroup_spec(32, 16, ElementType::f16), [](TileSpec& spec) {
        spec.tile_rows = 256;
        spec.tile_columns = 16;
      });
  constexpr TileSpec kTallWarps = changed(small_tile(32, 16, ElementType::f16), [](TileSpec& spec) {
    spec.tile_rows = 256;
    spec.tile_columns = 16;
    spec.row_warps = 2;   // 128 rows a warp
  });
  expect_convolves<kTwoBlocks>(map.view());
  expect_convolves<kTallWarps>(map.view());
  expect_convolves<changed(lane_spec(16, 32), [](TileSpec& spec) {
    spec.tile_rows = 256;
    spec.row_warps = 2;
  })>(map.view());
}

TEST(TileWgmma, multiplies_two_blocks_a_warpgroup) {
  constexpr TileSpec kTall = changed(warpgroup_spec(32, 16, ElementType::bf16), [](TileSpec& spec) {
    spec.tile_rows = 256;
    spec.tile_columns = 16;
  });
  const SyntheticMap map = synthetic_map(27, 300, 310, 0.2, true, 4);
  expect_convolves<kTall>(map.view());
}

template <TileSpec S> void expect_epilogue(Activation activation) {
  EmulatedConvolution<S> convolution(small_map().view());
  convolution.add_epilogue(activation);
  convolution.run();
  expect_close(convolution.output, convolution.expected(), 32);
}

TEST(TileEpilogue, scales_shifts_adds_and_activates) {
  constexpr TileSpec kHalf = small_tile(16, 24, ElementType::f16);
  expect_epilogue<kHalf>(Activation::none);
  expect_epilogue<kHalf>(Activation::relu);
  expect_epilogue<kHalf>(Activation::leaky_relu);
  expect_epilogue<warpgroup_spec(32, 21, ElementType::bf16)>(Activation::relu);
  expect_epilogue<small_tile(8, 6, ElementType::tf32)>(Activation::leaky_relu);
  expect_epilogue<direct_spec(16, 24, ElementType::f16)>(Activation::relu);
}

TEST(TileEpilogue, knows_all_activations_where_they_are_compiled_in) {
  constexpr TileSpec kAll = changed(small_tile(16, 24, ElementType::f16),
                                    [](TileSpec& spec) { spec.activations = ActivationSet::all; });
  for (const Activation activation : {Activation::relu, Activation::silu, Activation::gelu,
                                      Activation::sigmoid, Activation::tanh})
    expect_epilogue<kAll>(activation);
}

TEST(TileEpilogue, stores_wide_tiles_in_pieces) {
  constexpr TileSpec kWarpgroup =
      changed(warpgroup_spec(32, 104, ElementType::bf16),
              [](TileSpec& spec) { spec.tile_columns = 104; });   // 64 and 40
  constexpr TileSpec kWarps = changed(small_tile(16, 160, ElementType::f16), [](TileSpec& spec) {
    spec.tile_columns = 160;   // 64, 64 and 32
    spec.tile_rows = 64;
    spec.row_warps = 4;
    spec.stages = 4;
  });
  constexpr TileSpec kLanes = changed(lane_spec(8, 128), [](TileSpec& spec) {
    spec.tile_columns = 128;
    spec.row_warps = 4;
    spec.stages = 4;
  });
  expect_epilogue<kWarpgroup>(Activation::relu);
  expect_epilogue<kWarps>(Activation::relu);
  expect_epilogue<kLanes>(Activation::relu);
}

constexpr auto two_sources = [](TileSpec& spec) {
  spec.first_channels = 24;
  spec.shortcut_channels = 40;
  spec.shortcut_first_channels = 16;
};

TEST(TileSources, channels_come_from_two_tensors_and_a_shortcut) {
  expect_epilogue<changed(small_tile(56, 32, ElementType::f16), two_sources)>(Activation::relu);
  expect_epilogue<changed(warpgroup_spec(56, 24, ElementType::bf16), two_sources)>(
      Activation::relu);
  expect_epilogue<changed(lane_spec(56, 32), two_sources)>(Activation::relu);
}

TEST(TileSources, narrow_rows_come_from_two_tensors_too) {
  constexpr TileSpec kNarrow = changed(small_tile(7, 5, ElementType::f16), [](TileSpec& spec) {
    spec.first_channels = 3;
    spec.shortcut_channels = spec.shortcut_first_channels = 2;
  });
  expect_convolves<kNarrow>(small_map().view());
}

/// Row i meets row i: a linear layer.
SyntheticMap identity_map(std::int64_t rows) {
  SyntheticMap map{1, rows, rows, {0, rows}, {}, {}, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i) {
    map.in.push_back(static_cast<std::int32_t>(i));
    map.out.push_back(static_cast<std::int32_t>(i));
  }
  return map;
}

TEST(TileSources, an_identity_needs_no_map) {
  constexpr auto identity = [](TileSpec& spec) { spec.gather = Gather::identity; };
  for (const std::int64_t rows : {0, 1, 31, 129}) {
    expect_convolves<changed(small_tile(24, 32, ElementType::f16), identity)>(
        identity_map(rows).view());
    expect_convolves<changed(warpgroup_spec(32, 24, ElementType::bf16), identity)>(
        identity_map(rows).view());
  }
}

}   // namespace
}   // namespace pumice
