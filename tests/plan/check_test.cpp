// What a plan may not be, whoever wrote it: a table, a database, a hand.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>
#include <pumice/plan/choose.hpp>

#include "plan/space/device_problem.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using test::message_of;

const Target kHopper = usual_target(kSm90a);
const Target kCpu{.cores = 4};

ConvolutionProblem layer(Direction direction, DType dtype = DType::f16) {
  return {.direction = direction,
          .in_rows = 5000,
          .out_rows = 5000,
          .offsets = 27,
          .in_channels = 32,
          .out_channels = 64,
          .dtype = dtype};
}

std::string refusal(const std::string& text, Direction direction, const Target& target) {
  return message_of([&] { check(parse_plan(text), layer(direction), target); });
}

/// Numbers that programs stumble over.
std::int32_t hostile(Random& random) {
  static constexpr std::int32_t kNumbers[] = {std::numeric_limits<std::int32_t>::min(),
                                              -65536,
                                              -128,
                                              -64,
                                              -32,
                                              -4,
                                              -2,
                                              -1,
                                              0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              8,
                                              16,
                                              31,
                                              32,
                                              33,
                                              48,
                                              64,
                                              96,
                                              128,
                                              192,
                                              256,
                                              1024,
                                              65536,
                                              1 << 26,
                                              1 << 28,
                                              1 << 29,
                                              1 << 30,
                                              std::numeric_limits<std::int32_t>::max()};
  return kNumbers[random.integer(0, std::ssize(kNumbers) - 1)];
}

/// Whether it is refused; nothing else than a sentence may come of it.
bool is_refused(const ConvolutionPlan& plan, const ConvolutionProblem& problem) {
  try {
    check(plan, problem, kHopper);
    return false;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("give"), std::string::npos) << error.what();
    return true;
  }
}

constexpr Instruction kInstructions[] = {Instruction::fma, Instruction::mma_sync,
                                         Instruction::wgmma};
constexpr int kPlans = 20'000;

TEST(CheckPlan, ATileOfAnyNumbersIsRefusedOrHasAKernel) {
  Random random(3);
  const ConvolutionProblem problem = layer(Direction::forward);
  const std::vector<Candidate> all = candidates(problem, kHopper);
  int accepted = 0;
  for (int i = 0; i < kPlans; ++i) {
    ConvolutionPlan plan =
        all[static_cast<std::size_t>(random.integer(0, std::ssize(all) - 1))].plan;
    if (!plan.tile) continue;
    std::int32_t* numbers[] = {&plan.tile->tile_rows,     &plan.tile->tile_columns,
                               &plan.tile->tile_depth,    &plan.tile->stages,
                               &plan.tile->row_warps,     &plan.tile->column_warps,
                               &plan.tile->blocks_per_sm, &plan.tile->resident_offsets};
    for (int changes = static_cast<int>(random.integer(0, 4)); changes > 0; --changes)
      *numbers[random.integer(0, std::ssize(numbers) - 1)] = hostile(random);
    if (random.integer(0, 4) == 0) plan.tile->instruction = kInstructions[random.integer(0, 2)];
    if (is_refused(plan, problem)) continue;
    ++accepted;
    const TileSpec spec = cuda::tile_spec(problem, plan);
    for (const std::int32_t* number : numbers)
      EXPECT_TRUE(*number >= (number == numbers[7] ? 0 : 1) && *number <= 1024) << plan.name();
    EXPECT_GT(threads(spec), 0) << plan.name();
    EXPECT_LE(threads(spec), 1024) << plan.name();
    EXPECT_GT(shared_bytes(spec), 0) << plan.name();
    EXPECT_LE(shared_bytes(spec) * spec.blocks_per_sm, 228 * 1024) << plan.name();
  }
  EXPECT_GT(accepted, kPlans / 20);
  EXPECT_LT(accepted, kPlans * 3 / 4);
}

TEST(CheckPlan, AGradientOfAnyNumbersIsRefusedOrHasAKernel) {
  Random random(4);
  const ConvolutionProblem problem = layer(Direction::weight_gradient);
  const std::vector<Candidate> all = candidates(problem, kHopper);
  int accepted = 0;
  for (int i = 0; i < kPlans; ++i) {
    ConvolutionPlan plan =
        all[static_cast<std::size_t>(random.integer(0, std::ssize(all) - 1))].plan;
    GradientSchedule& of = *plan.gradient;
    std::int32_t* numbers[] = {&of.tile_in,  &of.tile_out,  &of.tile_pairs,    &of.stages,
                               &of.in_warps, &of.out_warps, &of.blocks_per_sm, &of.share_blocks};
    for (int changes = static_cast<int>(random.integer(0, 4)); changes > 0; --changes)
      *numbers[random.integer(0, std::ssize(numbers) - 1)] = hostile(random);
    if (random.integer(0, 4) == 0) of.instruction = kInstructions[random.integer(0, 2)];
    if (is_refused(plan, problem)) continue;
    ++accepted;
    const GradientSpec spec = cuda::gradient_spec(problem, plan);
    EXPECT_GT(gradient_tiles(spec), 0) << plan.name();
    EXPECT_GE(spec.tile_pairs, 32) << plan.name();
    EXPECT_GE(of.share_blocks, 0) << plan.name();
    EXPECT_LE(of.share_blocks, 65536) << plan.name();
    EXPECT_GT(threads(spec), 0) << plan.name();
    EXPECT_LE(threads(spec), 1024) << plan.name();
    EXPECT_LE(shared_bytes(spec, 27) * spec.blocks_per_sm, 228 * 1024) << plan.name();
  }
  EXPECT_GT(accepted, kPlans / 20);
  EXPECT_LT(accepted, kPlans * 3 / 4);
}

TEST(CheckPlan, NamesTheNumberAndItsBounds) {
  const auto gradient = [](const std::string& number) {
    return refusal(R"({"dataflow":"sum_over_pairs","write":"add","gradient":{)" + number + "}}",
                   Direction::weight_gradient, kHopper);
  };
  EXPECT_NE(gradient(R"("tile_out":0)").find("tile_out = 0: give 8 to 1024"), std::string::npos);
  EXPECT_NE(gradient(R"("tile_pairs":-32)").find("tile_pairs = -32: give 32 to 256"),
            std::string::npos);
  EXPECT_NE(gradient(R"("in_warps":-2,"out_warps":-2)").find("in_warps = -2: give 1 to 32"),
            std::string::npos);
  EXPECT_NE(gradient(R"("share_blocks":-1)").find("share_blocks = -1: give 0 to 65536"),
            std::string::npos);
  const std::string warps =
      refusal(R"({"dataflow":"implicit_gemm","tile":{"row_warps":1073741824,"column_warps":4}})",
              Direction::forward, kHopper);
  EXPECT_NE(warps.find("row_warps = 1073741824: give 1 to 32"), std::string::npos) << warps;
}

TEST(CheckPlan, RefusesWhatNothingWouldRead) {
  for (const auto& [text, word] : {
           std::pair(R"({"dataflow":"fetch_on_demand","tile_rows":64,"sort_by_mask":true})",
                     "leave sort_by_mask out"),
           std::pair(R"({"dataflow":"gather_gemm_scatter","tile_rows":64,"sort_by_mask":true})",
                     "leave sort_by_mask out"),
           std::pair(R"({"dataflow":"implicit_gemm","tile_rows":64,"fuses_inputs":true})",
                     "leave fuses_inputs out"),
       }) {
    const std::string said = refusal(text, Direction::forward, kCpu);
    EXPECT_NE(said.find(word), std::string::npos) << text << ": " << said;
  }
  const std::string said =
      refusal(R"({"dataflow":"sum_over_pairs","tile_rows":77})", Direction::weight_gradient, kCpu);
  EXPECT_NE(said.find("tile_rows = 77"), std::string::npos) << said;
}

TEST(CheckPlan, ANumberThatIsTooLargeIsSaidAsItWasWritten) {
  for (const char* number : {"18446744073709551615", "9223372036854775808"}) {
    const std::string said = message_of([&] {
      (void)parse_plan(std::string(R"({"dataflow":"fetch_on_demand","tile_rows":)") + number + "}");
    });
    EXPECT_NE(said.find(std::string("tile_rows = ") + number + " is out of range"),
              std::string::npos)
        << said;
  }
}

TEST(CheckPlan, TakesEveryCandidate) {
  for (const Direction direction :
       {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::uint32_t architecture : {kSm80, kSm86, kSm89, kSm90a, kSm100, kSm120}) {
        const Target target = usual_target(architecture);
        for (const Candidate& one : candidates(layer(direction, dtype), target))
          EXPECT_NO_THROW(check(one.plan, layer(direction, dtype), target)) << one.plan.name();
      }
      for (const Candidate& one : candidates(layer(direction, dtype), kCpu))
        EXPECT_NO_THROW(check(one.plan, layer(direction, dtype), kCpu)) << one.plan.name();
    }
  }
}

}   // namespace
}   // namespace pumice
