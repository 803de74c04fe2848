// Every decision of the rules for a table of problems, word for word: dataflow, tile, order of
// rows, parts of the offsets, way of adding. Whoever changes a rule sees here which layers run
// another kernel from then on, and changes the rows that were meant to change.
//
// Covers choose.
#include <pumice/plan/choose.hpp>

#include <gtest/gtest.h>

#include <pumice/shared/tile_limits.h>

namespace pumice {
namespace {

/// A CPU: no rule asks what kind.
constexpr std::uint32_t kCpu = 0;

struct Decision {
  std::uint32_t machine;
  const char* problem;
  std::int64_t in_rows, out_rows;
  std::int64_t pairs;   // a device does not know them
  const char* plan;
  bool fuses_inputs = false;
  std::optional<Dataflow> wanted = std::nullopt;
};

constexpr std::int64_t kScan = 91767;   // a street, and the pairs of its 3³ layers
constexpr std::int64_t kPairs = 345900;

constexpr Decision kDecisions[] = {
    // On the CPU sums of a tile fill up to 256 KiB: 2,048 rows of 32 floats, 1,024 of 32 doubles.
    // At
    // least 32 tiles, at least 64 rows.
    {kCpu, "forward f32 4>32 offsets 27", kScan, kScan, kPairs, "fetch_on_demand/2048"},
    {kCpu, "forward f32 96>96 offsets 27", kScan, kScan, kPairs, "fetch_on_demand/512"},
    {kCpu, "forward bf16 96>96 offsets 27", kScan, kScan, kPairs, "fetch_on_demand/512"},
    {kCpu, "forward f64 32>32 offsets 27", 365011, 365011, 1400000, "fetch_on_demand/1024"},
    {kCpu, "forward f32 96>1000 offsets 27", kScan, kScan, kPairs, "fetch_on_demand/64"},
    {kCpu, "forward f32 256>256 offsets 27", 5900, 5900, 60000, "fetch_on_demand/128"},
    {kCpu, "forward f32 96>96 offsets 27", 0, 0, 0, "fetch_on_demand/64"},
    {kCpu, "forward f32 64>128 offsets 8", kScan, 40000, kScan, "fetch_on_demand/512"},
    {kCpu, "input_gradient f32 128>64 offsets 8", 40000, kScan, kScan, "fetch_on_demand/1024"},
    {kCpu, "forward f32 64>64 offsets 27 groups 64", kScan, kScan, kPairs, "fetch_on_demand/1024"},
    {kCpu, "forward f32 96>20 offsets 1 identity", kScan, kScan, kScan, "fetch_on_demand/2048"},
    // A full table, and from 80 % of one on: 216,000 of 270,000 pairs.
    {kCpu, "forward f32 128>64 offsets 1", kScan, kScan, kScan, "implicit_gemm/1024"},
    {kCpu, "forward f32 32>32 offsets 27", 10000, 10000, 215999, "fetch_on_demand/256"},
    {kCpu, "forward f32 32>32 offsets 27", 10000, 10000, 216000, "implicit_gemm/256"},
    {kCpu, "weight_gradient f32 96>96 offsets 27", kScan, kScan, kPairs, "sum_over_pairs"},
    {kCpu, "forward f32 96>96 offsets 27", kScan, kScan, kPairs, "implicit_gemm/512/sorted", false,
     Dataflow::implicit_gemm},
    {kCpu, "forward f32 96>96 offsets 27", kScan, kScan, kPairs, "gather_gemm_scatter/512", false,
     Dataflow::gather_gemm_scatter},

    // Hopper: weights of few channels stay in shared memory, wide layers multiply with wgmma, few
    // rows are cut into small tiles.
    {kSm90a, "forward f16 4>32 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_resident_256x32x16_s3_w8x1_b2"},
    {kSm90a, "forward f16 3>20 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_resident_256x32x16_s3_w8x1_b2"},
    {kSm90a, "forward f16 32>32 offsets 27", kScan, kScan, 0,
     "implicit_gemm/wgmma_256x32x32_s8_w8x1"},
    {kSm90a, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/wgmma_256x96x96_s3_w8x1"},
    {kSm90a, "forward f16 96>96 offsets 27", 100, 100, 0,
     "implicit_gemm/wgmma_64x96x48_s7_w4x1_b2"},
    {kSm90a, "forward bf16 256>256 offsets 27", 14467, 14467, 0,
     "implicit_gemm/wgmma_64x128x64_s4_w4x1_b2"},
    {kSm90a, "forward f16 64>128 offsets 8", kScan, 40000, 0,
     "implicit_gemm/wgmma_256x128x64_s4_w8x1"},
    {kSm90a, "forward f16 64>64 offsets 27", 31834, 31834, 0,
     "implicit_gemm/wgmma_128x64x64_s8_w8x1"},
    {kSm90a, "input_gradient f16 128>64 offsets 8", 40000, kScan, 0,
     "implicit_gemm/wgmma_256x64x64_s5_w8x1"},
    {kSm90a, "forward f16 96>20 offsets 1 identity", kScan, kScan, 0,
     "implicit_gemm/mma_sync_64x32x32_s4_w4x1_b4"},
    {kSm90a, "forward f16 64>128 offsets 27 groups 4", kScan, kScan, 0,
     "implicit_gemm/wgmma_256x32x16_s8_w8x1"},
    {kSm90a, "forward f16 64>64 offsets 27 groups 64", kScan, kScan, 0, "implicit_gemm/sorted"},
    {kSm90a, "forward f16 384>256 offsets 27 second 128", 14467, 14467, 0,
     "implicit_gemm/wgmma_64x128x64_s4_w4x1_b2", true},
    {kSm90a, "forward f16 256>256 offsets 27 shortcut 384 of 256", 14467, 14467, 0,
     "implicit_gemm/wgmma_64x128x64_s4_w4x1_b2", true},
    // Few rows fill the machine in parts, and sums that no 16-bit tensor core makes are cut into
    // parts where they are long.
    {kSm90a, "forward bf16 256>256 offsets 27", 5900, 5900, 0,
     "implicit_gemm/wgmma_128x256x64_s4_w8x1/splits 4/slots"},
    {kSm90a, "forward f16 256>256 offsets 27 shortcut 384 of 256", 5900, 5900, 0,
     "implicit_gemm/wgmma_128x256x64_s4_w8x1/splits 4/slots", true},
    {kSm90a, "forward f32 32>32 offsets 27", 60152, 60152, 0,
     "implicit_gemm/fma_128x32x16_s4_w4x1_b4/splits 4/slots"},
    {kSm90a, "forward tf32 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/wgmma_256x96x32_s5_w8x1"},
    {kSm90a, "forward tf32 256>256 offsets 27", 5900, 5900, 0,
     "implicit_gemm/wgmma_128x256x32_s4_w8x1/splits 4/slots"},
    {kSm90a, "forward f32 4>32 offsets 27", kScan, kScan, 0,
     "implicit_gemm/fma_128x32x8_s4_w4x1_b4"},
    {kSm90a, "forward f32 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/fma_128x32x16_s4_w4x1_b3/splits 3/slots"},
    {kSm90a, "forward f32 256>256 offsets 27", 5900, 5900, 0,
     "implicit_gemm/fma_64x128x16_s4_w2x2_b3/splits 4/slots"},
    {kSm90a, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "fetch_on_demand/wgmma_256x96x96_s3_w8x1/add", false, Dataflow::fetch_on_demand},
    {kSm90a, "forward f16 96>96 offsets 27 deterministic", kScan, kScan, 0,
     "fetch_on_demand/wgmma_256x96x96_s3_w8x1/slots", false, Dataflow::fetch_on_demand},
    {kSm90a, "forward f16 96>96 offsets 27", kScan, kScan, 0, "gather_gemm_scatter", false,
     Dataflow::gather_gemm_scatter},
    {kSm90a, "weight_gradient f16 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/wgmma_128x96x64_s6_w8x1/add"},
    {kSm90a, "weight_gradient f16 96>96 offsets 27 deterministic", kScan, kScan, 0,
     "sum_over_pairs/wgmma_128x96x64_s6_w8x1/slots"},
    {kSm90a, "weight_gradient bf16 4>32 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_16x32x32_s3_w1x1_b16/add"},
    {kSm90a, "weight_gradient tf32 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_96x96x32_s4_w2x2_b2/add"},
    {kSm90a, "weight_gradient f32 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/fma_96x128x32_s3_w2x2_b2/add"},
    // Slots of an offset are read one after the other, so that fewer blocks fill fewer of them; few
    // rows take smaller tiles, with more blocks.
    {kSm90a, "weight_gradient bf16 16>16 offsets 27 deterministic", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_16x16x32_s4_w1x1_b16/shares 1056/slots"},
    {kSm90a, "weight_gradient bf16 128>256 offsets 27", 5925, 5925, 0,
     "sum_over_pairs/wgmma_128x128x64_s6_w8x1/add"},
    {kSm90a, "weight_gradient bf16 256>256 offsets 27 deterministic", 5925, 5925, 0,
     "sum_over_pairs/wgmma_128x128x64_s6_w8x1/slots"},
    {kSm90a, "weight_gradient bf16 256>256 offsets 27 deterministic", 252392, 252392, 0,
     "sum_over_pairs/wgmma_128x256x64_s4_w8x1/slots"},
    {kSm90a, "weight_gradient f16 64>64 offsets 27 groups 64", kScan, kScan, 0,
     "sum_over_pairs/slots"},

    // Elsewhere there is no wgmma, and sm_86, sm_89 and sm_120 have 99 KiB a block.
    {kSm80, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x96x32_s4_w4x1_b2"},
    {kSm80, "forward tf32 256>256 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x128x16_s4_w4x2_b2"},
    {kSm80, "weight_gradient f16 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_96x96x32_s4_w2x2_b3/add"},
    {kSm86, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x96x32_s4_w4x1"},
    {kSm86, "weight_gradient f16 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_96x96x32_s2_w2x2_b3/add"},
    {kSm89, "forward tf32 256>256 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x128x16_s4_w4x2"},
    {kSm100, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x96x32_s4_w4x1_b2"},
    {kSm100, "weight_gradient f16 96>96 offsets 27", kScan, kScan, 0,
     "sum_over_pairs/mma_sync_96x96x32_s4_w2x2_b3/add"},
    {kSm120, "forward f16 96>96 offsets 27", kScan, kScan, 0,
     "implicit_gemm/mma_sync_128x96x32_s4_w4x1"},
};

TEST(Decisions, are_those_of_the_table) {
  for (const Decision& decision : kDecisions) {
    ConvolutionProblem problem = parse_problem(decision.problem);
    problem.in_rows = decision.in_rows;
    problem.out_rows = decision.out_rows;
    problem.pairs = decision.pairs;
    const Target target =
        decision.machine == kCpu ? Target{.cores = 8} : usual_target(decision.machine);
    const PlanPtr plan = choose_by_rules(problem, target, decision.wanted);
    SCOPED_TRACE(std::string(decision.problem) + " on machine " + std::to_string(decision.machine));
    EXPECT_EQ(plan->name(), decision.plan);
    EXPECT_EQ(plan->fuses_inputs, decision.fuses_inputs);
    EXPECT_NO_THROW(check(*plan, problem, target));
    // The name tells all but whether inputs are fused.
    const ConvolutionPlan back = parse_plan(to_text(*plan));
    EXPECT_TRUE(back.runs_like(*plan)) << to_text(*plan);
    EXPECT_EQ(back.name(), decision.plan);
  }
}

}   // namespace
}   // namespace pumice
