// The choice of weight gradient kernels against recorded times.
#include "plan/space/gradient_cost.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gradient_times.hpp"
#include "kernels/cuda/gradient_source.hpp"

namespace pumice::cuda {
namespace {

using test::GradientTime;

bool same_layer(const GradientTime& a, const GradientTime& b) {
  return a.rows == b.rows && a.in == b.in && a.out == b.out;
}

GradientProblem problem_of(const GradientTime& layer, ElementType operand, Write write) {
  return {.operand = operand,
          .write = write,
          .in_channels = layer.in,
          .out_channels = layer.out,
          .offsets = 27,
          .rows = layer.rows};
}

/// How much longer than the fastest recorded time the choice takes.
double over_fastest(std::span<const GradientTime> times, const GradientTime& layer,
                    const GradientProblem& problem) {
  const GradientChoice chosen = choose_gradient(problem);
  double fastest = std::numeric_limits<double>::infinity(), taken = 0;
  for (const GradientTime& time : times) {
    if (!same_layer(time, layer)) continue;
    fastest = std::min(fastest, time.filling_us);
    if (time.half_us > 0) fastest = std::min(fastest, time.half_us);
    const bool is_chosen = time.instruction == chosen.spec.instruction &&
                           time.tile_in == chosen.spec.tile_in &&
                           time.tile_out == chosen.spec.tile_out;
    if (is_chosen) taken = chosen.share_blocks > 0 ? time.half_us : time.filling_us;
  }
  EXPECT_GT(taken, 0) << "not recorded: " << gradient_name(chosen.spec) << " / "
                      << chosen.share_blocks;
  return taken / fastest;
}

struct Comparison {
  std::vector<std::string> slower;   // layers whose choice takes over 10 % longer
  int layers = 0;
};

Comparison compare(std::span<const GradientTime> times, ElementType operand, Write write) {
  Comparison result;
  const GradientTime* last = nullptr;
  for (const GradientTime& time : times) {
    if (last != nullptr && same_layer(*last, time)) continue;
    last = &time;
    ++result.layers;
    const std::string name = std::to_string(time.rows) + " rows, " + std::to_string(time.in) +
                             " to " + std::to_string(time.out);
    SCOPED_TRACE(name);
    if (over_fastest(times, time, problem_of(time, operand, write)) > 1.10)
      result.slower.push_back(name);
  }
  return result;
}

/// Its kernel takes 12.6 us, and 11.2 with half the blocks.
const std::vector<std::string> kSlowerBf16{"91767 rows, 16 to 16"};

TEST(GradientCost, takes_the_fastest_recorded_kernels) {
  const Comparison added = compare(test::kAddedBf16, ElementType::bf16, Write::add);
  EXPECT_EQ(added.layers, 30);
  EXPECT_EQ(added.slower, kSlowerBf16);
  const Comparison slots = compare(test::kSlotsBf16, ElementType::bf16, Write::slots);
  EXPECT_EQ(slots.layers, 30);
  EXPECT_EQ(slots.slower, std::vector<std::string>{});
  const Comparison lanes = compare(test::kAddedF32, ElementType::f32, Write::add);
  EXPECT_EQ(lanes.layers, 30);
  EXPECT_EQ(lanes.slower, std::vector<std::string>{});
  const Comparison tf32 = compare(test::kFastestTf32, ElementType::tf32, Write::add);
  EXPECT_EQ(tf32.layers, 30);
  EXPECT_EQ(tf32.slower, std::vector<std::string>{});
}

/// The constants belong to their formula: predictions of what they were fitted to.
TEST(GradientCost, is_within_a_quarter_of_most_recorded_times) {
  int times = 0, close = 0;
  const auto count = [&](std::span<const GradientTime> all, ElementType operand, Write write) {
    for (const GradientTime& time : all) {
      const GradientProblem problem = problem_of(time, operand, write);
      for (const GradientSpec& spec : gradient_candidates(problem)) {
        if (spec.instruction != time.instruction || spec.tile_in != time.tile_in ||
            spec.tile_out != time.tile_out)
          continue;
        const double cost =
            gradient_cost(spec, gradient_blocks(spec, problem.multiprocessors), problem);
        ++times;
        close += cost > time.filling_us / 1.25 && cost < time.filling_us * 1.25 ? 1 : 0;
      }
    }
  };
  // Rows have 4 to 16 pairs, and 8 are supposed: the scenes with 7 to 10 alone.
  const auto some = [](std::span<const GradientTime> all) {
    std::vector<GradientTime> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [](const GradientTime& time) {
      return time.rows == 31834 || time.rows == 14467 || time.rows == 5925;
    });
    return kept;
  };
  count(some(test::kAddedBf16), ElementType::bf16, Write::add);
  count(some(test::kSlotsBf16), ElementType::bf16, Write::slots);
  count(some(test::kAddedF32), ElementType::f32, Write::add);
  count(some(test::kFastestTf32), ElementType::tf32, Write::add);
  EXPECT_GT(times, 50);
  EXPECT_GT(close, times * 9 / 10) << "of " << times;
}

/// A linear layer has one offset, whose slots are read one after the other.
TEST(GradientCost, has_fewer_blocks_where_slots_are_read_in_turn) {
  GradientProblem problem{.operand = ElementType::bf16,
                          .write = Write::slots,
                          .in_channels = 32,
                          .out_channels = 32,
                          .offsets = 1,
                          .rows = 100000};
  EXPECT_GT(choose_gradient(problem).share_blocks, 0);
  problem.write = Write::add;
  EXPECT_EQ(choose_gradient(problem).share_blocks, 0);
}

TEST(GradientCost, grows_with_the_work_and_on_smaller_machines) {
  for (const ElementType operand : {ElementType::bf16, ElementType::tf32, ElementType::f32}) {
    for (const Write write : {Write::add, Write::slots}) {
      GradientProblem problem{.operand = operand,
                              .write = write,
                              .in_channels = 96,
                              .out_channels = 96,
                              .offsets = 27,
                              .architecture = kSm80};
      const GradientSpec spec = gradient_candidates(problem).front();
      double last = 0;
      for (const std::int64_t rows : {0, 1, 31, 33, 1000, 100000, 10000000}) {
        problem.rows = rows;
        const double cost = gradient_cost(spec, 100, problem);
        EXPECT_GT(cost, last) << rows;
        last = cost;
      }
      problem.multiprocessors = 46;
      EXPECT_GT(gradient_cost(spec, 100, problem), last);
    }
  }
}

}   // namespace
}   // namespace pumice::cuda
