// The sources that kernels are compiled from, letter for letter, beside those in golden/. What they
// say is a promise: bundles and caches know a kernel by the digest of its text, so that a change of
// one word compiles everything anew. PUMICE_UPDATE_GOLDEN=1 writes the files instead; what changed
// is then in the difference of the commit.
#include "kernels/cuda/tile_source.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>

#include "kernels/cuda/gradient_source.hpp"

namespace pumice::cuda {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = PUMICE_SOURCE_DIR "/tests/kernels/golden";

/// A decoder's level on Hopper: the widest type of tile, two blocks of rows a warpgroup.
constexpr TileSpec kWarpgroups{.instruction = Instruction::wgmma,
                               .in_channels = 128,
                               .first_channels = 128,
                               .out_channels = 128,
                               .tile_rows = 128,
                               .tile_columns = 128,
                               .tile_depth = 64,
                               .stages = 4,
                               .row_warps = 8};
/// 256 channels beside 128, and a shortcut of both, whose offsets are summed in two parts.
constexpr TileSpec kTwoSources{.write = Write::slots,
                               .in_channels = 384,
                               .first_channels = 256,
                               .out_channels = 256,
                               .shortcut_channels = 384,
                               .shortcut_first_channels = 256,
                               .tile_columns = 128,
                               .column_warps = 2,
                               .activations = ActivationSet::all};
constexpr TileSpec kTf32{.operand = ElementType::tf32,
                         .output = ElementType::f32,
                         .in_channels = 96,
                         .first_channels = 96,
                         .out_channels = 96,
                         .tile_columns = 96,
                         .tile_depth = 16};
constexpr TileSpec kF32{.instruction = Instruction::fma,
                        .operand = ElementType::f32,
                        .output = ElementType::f32,
                        .write = Write::add,
                        .in_channels = 32,
                        .first_channels = 32,
                        .out_channels = 64,
                        .groups = 2,
                        .tile_depth = 16,
                        .stages = 3};
/// The first layer: weights that stay, two blocks a multiprocessor.
constexpr TileSpec kResident{.operand = ElementType::bf16,
                             .output = ElementType::bf16,
                             .in_channels = 4,
                             .first_channels = 4,
                             .out_channels = 32,
                             .tile_rows = 64,
                             .tile_columns = 32,
                             .tile_depth = 32,
                             .blocks_per_sm = 2,
                             .resident_offsets = 27};
/// A linear layer.
constexpr TileSpec kRows{.gather = Gather::identity,
                         .in_channels = 64,
                         .first_channels = 64,
                         .out_channels = 20,
                         .tile_columns = 32,
                         .affine = false,
                         .residual = false};

constexpr GradientSpec kGradientWarpgroups{.instruction = Instruction::wgmma,
                                           .operand = ElementType::bf16,
                                           .in_channels = 128,
                                           .out_channels = 128,
                                           .tile_in = 64,
                                           .tile_out = 128,
                                           .tile_pairs = 64,
                                           .in_warps = 4,
                                           .out_warps = 1};
constexpr GradientSpec kGradientTf32{.operand = ElementType::tf32,
                                     .write = Write::slots,
                                     .in_channels = 96,
                                     .out_channels = 96,
                                     .tile_in = 96,
                                     .tile_out = 96,
                                     .blocks_per_sm = 2};
constexpr GradientSpec kGradientF32{.instruction = Instruction::fma,
                                    .operand = ElementType::f32,
                                    .in_channels = 5,
                                    .out_channels = 3,
                                    .groups = 4};

std::map<std::string, std::string> all_sources() {
  std::map<std::string, std::string> sources{
      {"depthwise_f16", depthwise_source(ElementType::f16)},
      {"depthwise_f32_slots", depthwise_partial_source(ElementType::f32, Write::slots)},
      {"finish_bf16", finish_source(ElementType::bf16)},
      {"sum_slots_f16", sum_slots_source(ElementType::f16)},
      {"gather_scatter", gather_scatter_source()},
      {"pack", pack_source()},
  };
  for (const TileSpec& spec : {kWarpgroups, kTwoSources, kTf32, kF32, kResident, kRows})
    sources[tile_name(spec)] = tile_source(spec);
  for (const GradientSpec& spec : {kGradientWarpgroups, kGradientTf32, kGradientF32})
    sources[gradient_name(spec)] = gradient_source(spec);
  return sources;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Sources, are_letter_for_letter_those_that_were_looked_at) {
  const std::map<std::string, std::string> sources = all_sources();
  EXPECT_EQ(sources.size(), 15u) << "two specifications have one name";
  const char* update = std::getenv("PUMICE_UPDATE_GOLDEN");
  const bool writes = update != nullptr && *update != '\0';
  for (const auto& [name, text] : sources) {
    const fs::path path = kGolden / (name + ".cu");
    if (writes) std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(text, text_of(path))
        << path << ": if the change is meant, PUMICE_UPDATE_GOLDEN=1 writes the file";
    EXPECT_LT(text.size(), 1600u) << "short enough to paste into an issue";
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(kGolden)) {
    const bool is_known = sources.count(entry.path().stem().string()) == 1;
    if (!is_known && writes) fs::remove(entry.path());
    EXPECT_TRUE(is_known || writes) << entry.path() << " is no source of any";
  }
}

/// A field that the text leaves out would make two kernels one in every cache.
TEST(Sources, differ_where_one_field_differs) {
  const auto expect_all_differ = [](const auto& spec, const auto& print, const auto& changes) {
    std::map<std::string, int> texts{{print(spec), -1}};
    for (std::size_t i = 0; i < changes.size(); ++i) {
      auto changed = spec;
      changes[i](changed);
      ASSERT_STREQ(why_invalid(changed), nullptr) << "change " << i;
      const auto [at, is_new] = texts.emplace(print(changed), static_cast<int>(i));
      EXPECT_TRUE(is_new) << "change " << i << " prints what " << at->second << " does";
    }
  };
  using Change = void (*)(TileSpec&);
  expect_all_differ(kTwoSources, tile_source,
                    std::vector<Change>{
                        [](TileSpec& s) { s.operand = s.output = ElementType::bf16; },
                        [](TileSpec& s) { s.output = ElementType::f32; },
                        [](TileSpec& s) { s.write = Write::store; },
                        [](TileSpec& s) { s.write = Write::add; },
                        [](TileSpec& s) { s.in_channels = 512; },
                        [](TileSpec& s) { s.first_channels = 128; },
                        [](TileSpec& s) { s.out_channels = 128; },
                        [](TileSpec& s) { s.shortcut_channels = s.shortcut_first_channels = 0; },
                        [](TileSpec& s) { s.shortcut_first_channels = 128; },
                        [](TileSpec& s) { s.tile_rows = 64; },
                        [](TileSpec& s) { s.tile_columns = 64; },
                        [](TileSpec& s) { s.tile_depth = 64; },
                        [](TileSpec& s) { s.stages = 3; },
                        [](TileSpec& s) { s.row_warps = 2; },
                        [](TileSpec& s) { s.column_warps = 1; },
                        [](TileSpec& s) { s.blocks_per_sm = 2; },
                        [](TileSpec& s) { s.affine = false; },
                        [](TileSpec& s) { s.residual = false; },
                        [](TileSpec& s) { s.activations = ActivationSet::sloped; },
                    });
  using GradientChange = void (*)(GradientSpec&);
  expect_all_differ(kGradientTf32, gradient_source,
                    std::vector<GradientChange>{
                        [](GradientSpec& s) { s.operand = ElementType::f16; },
                        [](GradientSpec& s) { s.write = Write::add; },
                        [](GradientSpec& s) { s.in_channels = 64; },
                        [](GradientSpec& s) { s.out_channels = 64; },
                        [](GradientSpec& s) { s.groups = 2; },
                        [](GradientSpec& s) { s.tile_in = 64; },
                        [](GradientSpec& s) { s.tile_out = 64; },
                        [](GradientSpec& s) { s.tile_pairs = 64, s.stages = 2; },
                        [](GradientSpec& s) { s.stages = 3; },
                        [](GradientSpec& s) { s.in_warps = 1, s.tile_in = 64; },
                        [](GradientSpec& s) { s.out_warps = 1, s.tile_out = 64; },
                        [](GradientSpec& s) { s.blocks_per_sm = 1; },
                    });
}

}   // namespace
}   // namespace pumice::cuda
