// What the tables of kernels promise: everything valid, something for every problem, and not too
// much of it.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/space/gradient_table.hpp"
#include "plan/space/tile_table.hpp"

namespace pumice::cuda {
namespace {

constexpr std::uint32_t kEach[] = {kSm80, kSm86, kSm89, kSm90a, kSm100, kSm120};
constexpr ElementType kTypes[] = {ElementType::f32, ElementType::tf32, ElementType::f16,
                                  ElementType::bf16};

ElementType stored(ElementType operand) {
  return operand == ElementType::tf32 ? ElementType::f32 : operand;
}

TEST(SpecTable, holds_fewer_than_1500_kernels_with_names_of_their_own) {
  std::set<std::string> names;
  std::set<std::uint64_t> prints;
  for (const std::uint32_t architecture : kEach) {
    for (const TileSpec& spec : standard_specs(architecture)) {
      names.insert(tile_name(spec));
      prints.insert(fingerprint(spec));
    }
    for (const GradientSpec& spec : standard_gradients(architecture)) {
      names.insert(gradient_name(spec));
      prints.insert(fingerprint(spec));
    }
  }
  EXPECT_LT(names.size(), 1500u);
  EXPECT_GT(names.size(), 1000u);
  EXPECT_EQ(names.size(), prints.size());
}

TEST(SpecTable, has_a_kernel_for_every_problem) {
  for (const std::uint32_t architecture : kEach) {
    for (const ElementType operand : kTypes) {
      for (const int in : {1, 3, 5, 16, 33, 96, 160, 384, 1024}) {
        for (const int out : {1, 4, 20, 32, 100, 256, 384, 1024}) {
          const TileSpec spec = choose_tile({.operand = operand,
                                             .output = stored(operand),
                                             .in_channels = in,
                                             .out_channels = out,
                                             .rows = 50000,
                                             .architecture = architecture});
          EXPECT_TRUE(is_valid(spec)) << tile_name(spec);
          EXPECT_NE(architectures(spec) & architecture, 0u) << tile_name(spec);
          EXPECT_TRUE(is_valid(choose_gradient({.operand = operand,
                                                .in_channels = in,
                                                .out_channels = out,
                                                .rows = 50000,
                                                .architecture = architecture})
                                   .spec));
        }
      }
    }
  }
}

/// Which kernel runs may depend on the number of rows; which kernels there are may not.
TEST(SpecTable, candidates_do_not_depend_on_rows) {
  TileProblem few{.in_channels = 96, .out_channels = 96, .rows = 100};
  TileProblem many = few;
  many.rows = 1000000;
  EXPECT_EQ(tile_candidates(few), tile_candidates(many));
  EXPECT_NE(choose_tile(few), choose_tile(many));
}

/// What is compiled ahead for an architecture serves all its devices.
TEST(SpecTable, pickable_tiles_are_those_of_every_device_of_an_architecture) {
  for (const int channels : {16, 32, 96, 256}) {
    TileProblem problem{.in_channels = channels, .out_channels = channels};
    const std::vector<TileSpec> all = pickable_tiles(problem);
    for (const int multiprocessors : {20, 46, 78, 108, 132, 170}) {
      for (const std::int64_t rows : {1, 70, 900, 11000, 91767, 365011, 5000000}) {
        problem.multiprocessors = multiprocessors;
        problem.rows = rows;
        const TileSpec spec = choose_tile(problem);
        EXPECT_NE(std::find(all.begin(), all.end(), spec), all.end())
            << tile_name(spec) << " for " << rows << " rows, " << multiprocessors;
      }
    }
  }
}

TEST(SpecTable, pickable_gradients_are_those_of_every_device_of_an_architecture) {
  for (const std::uint32_t architecture : kEach) {
    for (const ElementType operand : kTypes) {
      for (const Write write : {Write::add, Write::slots}) {
        for (const auto& [in, out] : {std::pair(16, 16), std::pair(96, 96), std::pair(128, 96),
                                      std::pair(128, 256), std::pair(256, 256)}) {
          GradientProblem problem{.operand = operand,
                                  .write = write,
                                  .in_channels = in,
                                  .out_channels = out,
                                  .offsets = 27,
                                  .architecture = architecture};
          const std::vector<GradientSpec> all = pickable_gradients(problem);
          for (const int multiprocessors : {4, 20, 46, 78, 108, 132, 170, 300}) {
            for (const std::int64_t rows : {0, 1, 70, 900, 11000, 91767, 365011, 5000000}) {
              problem.multiprocessors = multiprocessors;
              problem.rows = rows;
              const GradientSpec spec = choose_gradient(problem).spec;
              EXPECT_NE(std::find(all.begin(), all.end(), spec), all.end())
                  << gradient_name(spec) << " for " << rows << " rows, " << multiprocessors;
            }
          }
        }
      }
    }
  }
}

TEST(SpecTable, hopper_multiplies_wide_layers_with_wgmma) {
  for (const int channels : {32, 64, 96, 128, 256}) {
    const TileSpec spec =
        choose_tile({.in_channels = channels, .out_channels = channels, .rows = 90000});
    EXPECT_EQ(spec.instruction, Instruction::wgmma) << channels;
  }
  EXPECT_EQ(choose_tile({.in_channels = 16, .out_channels = 16, .rows = 90000}).instruction,
            Instruction::mma_sync);
}

TEST(TileLimits, refuse_with_a_reason) {
  TileSpec spec;
  spec.in_channels = spec.first_channels = 32;
  spec.out_channels = 32;
  EXPECT_TRUE(is_valid(spec));
  spec.tile_rows = 96;
  EXPECT_STREQ(why_invalid(spec), "tile_rows is a multiple of 64 up to 1024");
  spec.tile_rows = 128;
  spec.operand = ElementType::f32;
  EXPECT_STREQ(why_invalid(spec), "fp32 operands and fp32 multiply-adds go together");
  spec.operand = ElementType::f16;
  spec.instruction = Instruction::wgmma;
  spec.row_warps = 6;
  EXPECT_STREQ(why_invalid(spec), "wgmma multiplies with whole warpgroups along the rows");
}

TEST(TileLimits, know_what_fits_an_architecture) {
  TileSpec spec;
  spec.in_channels = spec.first_channels = 64;
  spec.out_channels = 64;
  spec.tile_depth = 64;
  spec.stages = 8;   // 192 KB
  EXPECT_EQ(architectures(spec), kSm90a | kSm100);
  spec.stages = 4;   // 96 KB
  EXPECT_EQ(architectures(spec), kAllArchitectures);
  spec.instruction = Instruction::wgmma;
  spec.row_warps = 8;
  EXPECT_EQ(architectures(spec), kSm90a);
}

}   // namespace
}   // namespace pumice::cuda
