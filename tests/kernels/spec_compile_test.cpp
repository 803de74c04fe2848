// Kernels of the table compile for every architecture they are for, without spills and without the
// assembler's notes on serialised wgmma. A spread of them by default; all of them with
//
//   PUMICE_ALL_SPECS=1 pumice_kernels_test --gtest_filter='*SpecCompile*'
//
// or those whose names begin with "gather_reduce" with PUMICE_ALL_SPECS=gather_reduce; several
// beginnings stand apart by commas.
// Covers tile_source, gradient_source, entry_source and part_source of src/kernels/cuda.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

#include "jit/compile.hpp"
#include "jit/nvrtc.hpp"
#include "jit/nvrtc_support.hpp"
#include "kernels/cuda/entry_launch.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/part_source.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/space/gradient_table.hpp"
#include "plan/space/tile_table.hpp"
#include "support/ptx.hpp"
#include "support/ptx_paths.hpp"

namespace pumice {
namespace {

struct NamedArchitecture {
  const char* name;
  std::uint32_t bit;

  friend void PrintTo(const NamedArchitecture& architecture, std::ostream* out) {
    *out << architecture.name;
  }
};
constexpr NamedArchitecture kArchitectures[] = {{"sm_80", kSm80},   {"sm_86", kSm86},
                                                {"sm_89", kSm89},   {"sm_90a", kSm90a},
                                                {"sm_100", kSm100}, {"sm_120", kSm120}};

/// Kernels of additive attention.
void add_scores(ElementType type, std::int64_t channels, std::vector<jit::Source>& sources) {
  for (const bool entries : {false, true}) {
    const EdgeMapSpec spec = cuda::edge_scores_spec(type, channels, entries);
    sources.push_back({cuda::entry_name(spec), cuda::entry_source(spec)});
    for (const bool attention : {false, true}) {
      for (const bool whole_heads : {false, true}) {
        ScoreGradientSpec back{type,      entries,
                               attention, whole_heads,
                               1,         cuda::score_gradient_schedule(type, channels, entries)};
        sources.push_back({cuda::entry_name(back), cuda::entry_source(back)});
        if (back.schedule.team == 32) continue;
        back.ways = 32 / back.schedule.team;
        sources.push_back({cuda::entry_name(back), cuda::entry_source(back)});
      }
    }
  }
}

/// Kernels over the parts of a pattern.
void add_parts(ElementType type, std::int64_t channels, std::vector<jit::Source>& sources) {
  const EntrySchedule schedule = cuda::entry_schedule(type, channels);
  for (const auto operation : {EntryOperation::sum, EntryOperation::most}) {
    for (const int values : {0, 1, 2, 3}) {   // none, one an entry, by head, by whole heads
      for (const bool numbered : {false, true}) {
        const GatherPartsSpec spec{.reduce = {.type = type,
                                              .operation = operation,
                                              .weighted = values > 0,
                                              .headed = values > 1,
                                              .whole_heads = values > 2,
                                              .numbered = numbered,
                                              .schedule = schedule}};
        sources.push_back({cuda::part_name(spec), cuda::part_source(spec)});
      }
    }
  }
  const DotPartsSpec spec{.type = type, .schedule = schedule};
  sources.push_back({cuda::part_name(spec), cuda::part_source(spec)});
}

/// Kernels of whole warps, as rules and candidates take them.
void add_warps(ElementType type, std::int64_t channels, std::vector<jit::Source>& sources) {
  EntrySchedule schedule = cuda::entry_schedule(type, channels);
  schedule.ways = 32 / schedule.team;
  for (const int ahead : {1, 2, 4, 8}) {
    schedule.ahead = ahead;
    for (const auto operation :
         {EntryOperation::sum, EntryOperation::most, EntryOperation::picked}) {
      for (const int values : {0, 1, 2, 3}) {   // none, one an entry, by head, by whole heads
        for (const int numbers : {0, 1, 2}) {   // none, of entries, of a transpose for means
          const GatherReduceSpec spec{.type = type,
                                      .operation = operation,
                                      .weighted = values > 0,
                                      .headed = values > 1,
                                      .whole_heads = values > 2,
                                      .numbered = numbers > 0,
                                      .shared = numbers > 1,
                                      .schedule = schedule};
          if (why_invalid(spec) != nullptr) continue;
          sources.push_back({cuda::entry_name(spec), cuda::entry_source(spec)});
          if (operation != EntryOperation::sum) continue;
          GatherReduceSpec added = spec;
          added.added = true;
          sources.push_back({cuda::entry_name(added), cuda::entry_source(added)});
        }
      }
    }
  }
}

std::vector<jit::Source> sources_for(std::uint32_t architecture) {
  std::vector<jit::Source> sources{{"pack_weight", cuda::pack_source()},
                                   {"gather_scatter", cuda::gather_scatter_source()}};
  for (const ElementType output : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    sources.push_back({"finish_partial", cuda::finish_source(output)});
    sources.push_back({"sum_slots", cuda::sum_slots_source(output)});
    sources.push_back({"depthwise", cuda::depthwise_source(output)});
    for (const Write write : {Write::add, Write::slots})
      sources.push_back({"depthwise_partial", cuda::depthwise_partial_source(output, write)});
  }
  for (const TileSpec& spec : cuda::standard_specs(architecture))
    sources.push_back({cuda::tile_name(spec), cuda::tile_source(spec)});
  for (const TileSpec& spec : cuda::standard_pair_specs(architecture))
    sources.push_back({cuda::tile_name(spec), cuda::tile_source(spec)});
  for (const GradientSpec& spec : cuda::standard_gradients(architecture))
    sources.push_back({cuda::gradient_name(spec), cuda::gradient_source(spec)});
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    for (const std::int64_t channels : {1, 6, 32, 128, 512, 4096}) {
      const EntrySchedule schedule = cuda::entry_schedule(type, channels);
      for (const auto operation :
           {EntryOperation::sum, EntryOperation::most, EntryOperation::picked}) {
        for (const int values : {0, 1, 2, 3}) {   // none, one an entry, by head, by whole heads
          for (const bool is_other_way : {false, true}) {   // of a transpose, for means
            const GatherReduceSpec spec{.type = type,
                                        .operation = operation,
                                        .weighted = values > 0,
                                        .headed = values > 1,
                                        .whole_heads = values > 2,
                                        .numbered = is_other_way,
                                        .shared = is_other_way,
                                        .schedule = schedule};
            sources.push_back({cuda::entry_name(spec), cuda::entry_source(spec)});
            if (operation != EntryOperation::sum) continue;
            GatherReduceSpec added = spec;
            added.added = true;
            sources.push_back({cuda::entry_name(added), cuda::entry_source(added)});
          }
        }
      }
      for (const bool picked : {false, true}) {
        const EdgeMapSpec spec = cuda::edge_dot_spec(type, channels, picked);
        sources.push_back({cuda::entry_name(spec), cuda::entry_source(spec)});
      }
      add_warps(type, channels, sources);
      add_scores(type, channels, sources);
      add_parts(type, channels, sources);
    }
  }
  return sources;
}

/// What is wrong with one; empty when nothing is.
std::string complaint_about(const jit::Source& source, const char* architecture, double& time) {
  try {
    const jit::CompileResult result = jit::compile(source, architecture);
    time = result.milliseconds;
    return jit::complaint_about(result);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// With one of `beginnings`, which stand apart by commas.
bool begins(std::string_view name, std::string_view beginnings) {
  while (true) {
    const std::size_t end = std::min(beginnings.find(','), beginnings.size());
    if (name.starts_with(beginnings.substr(0, end))) return true;
    if (end == beginnings.size()) return false;
    beginnings.remove_prefix(end + 1);
  }
}

/// Those that PUMICE_ALL_SPECS names, or else one of 121, from the one numbered `first` on: a
/// number that shares no factor with the lengths of the loops above (2, 3, 4, 6), so that a spread
/// meets every value. NVRTC of an odd version compiles others than one of an even version
/// (`nvrtc12.*`).
std::vector<jit::Source> spread_of(std::vector<jit::Source> sources, std::size_t first) {
  const char* const all = std::getenv("PUMICE_ALL_SPECS");
  if (all != nullptr && std::string_view(all) != "1")
    std::erase_if(sources, [&](const jit::Source& source) { return !begins(source.name, all); });
  const std::size_t step = all != nullptr ? 1 : 121;
  if (jit::nvrtc_state().major % 2 != 0) first += 60;
  std::vector<jit::Source> spread;
  for (std::size_t i = first % step; i < sources.size(); i += step)
    spread.push_back(std::move(sources[i]));
  return spread;
}

/// complaints[i] = complain(sources[i], i), by all cores.
template <class Complain>
std::vector<std::string> complaints_about(const std::vector<jit::Source>& sources,
                                          const Complain& complain) {
  std::vector<std::string> complaints(sources.size());
  parallel_for(
      static_cast<std::int64_t>(sources.size()), 1, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          complaints[i] = complain(sources[i], i);
      });
  return complaints;
}

class SpecCompile : public ::testing::TestWithParam<NamedArchitecture> {};

TEST_P(SpecCompile, without_spills_and_serialised_products) {
  PUMICE_NEEDS_NVRTC();
  const NamedArchitecture architecture = GetParam();
  if (!test::compiles_for(std::stoi(std::string(architecture.name).substr(3))))
    GTEST_SKIP() << "this NVRTC does not compile for " << architecture.name;
  const std::vector<jit::Source> spread =
      spread_of(sources_for(architecture.bit), architecture.bit);
  std::vector<double> times(spread.size());
  const std::vector<std::string> complaints =
      complaints_about(spread, [&](const jit::Source& source, std::size_t i) {
        return complaint_about(source, architecture.name, times[i]);
      });
  for (std::size_t i = 0; i < spread.size(); ++i)
    EXPECT_EQ(complaints[i], "") << spread[i].name << " for " << architecture.name;
  std::sort(times.begin(), times.end());
  RecordProperty("specs", static_cast<int>(spread.size()));
  RecordProperty("median_ms", static_cast<int>(times[times.size() / 2]));
  RecordProperty("slowest_ms", static_cast<int>(times.back()));
  std::printf("%s: %zu specs, compile %.0f ms (median), %.0f ms (slowest)\n", architecture.name,
              spread.size(), times[times.size() / 2], times.back());
}

/// Kernels wait first of all, or before all that a kernel may not do that reads ahead, and let the
/// next one in where their main loop ends. Those without a specification:
/// tests/device/dependent_launch_test.cpp.
TEST(DependentSpecCompile, ToKernelsThatWaitInTime) {
  PUMICE_NEEDS_NVRTC();
  if (!test::compiles_for(90)) GTEST_SKIP() << "this NVRTC does not compile for sm_90";
  const std::vector<jit::Source> spread = spread_of(sources_for(kSm90a), 0);
  std::vector<test::EntryCount> counts(spread.size());
  const auto complain = [&](const jit::Source& source, std::size_t i) {
    try {
      const std::string ptx = test::ptx_of(source, "compute_90a");
      const bool reads_ahead = source.text.find("wait_unless(") != std::string::npos;
      return reads_ahead ? test::complaint_about_reading_ahead(ptx, &counts[i])
                         : test::complaint_about_waiting(ptx, &counts[i]);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  };
  const std::vector<std::string> complaints = complaints_about(spread, complain);
  for (std::size_t i = 0; i < spread.size(); ++i) {
    EXPECT_EQ(complaints[i], "") << spread[i].name;
    EXPECT_GE(counts[i].entries, 1) << spread[i].name;
    const std::string& text = spread[i].text;
    const bool has_main_loop =
        text.find("(PUMICE_ARGUMENT(pumice::TileArguments)") != std::string::npos ||
        text.find("(PUMICE_ARGUMENT(pumice::GradientArguments)") != std::string::npos;
    EXPECT_EQ(counts[i].triggers > 0, has_main_loop) << spread[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, SpecCompile, ::testing::ValuesIn(kArchitectures),
                         [](const auto& param) { return std::string(param.param.name); });

}   // namespace
}   // namespace pumice
