// Specifications of kernels over entries as source text.
#pragma once

#include <string>

#include <pumice/shared/entry_spec.h>

namespace pumice::cuda {

/// The kernels' names in the sources below.
inline constexpr const char* kGatherReduceKernel = "gather_reduce";
inline constexpr const char* kFinishLongRowsKernel = "finish_long_rows";
inline constexpr const char* kEdgeMapKernel = "edge_map";
inline constexpr const char* kScoreGradientKernel = "score_gradient";
inline constexpr const char* kFinishScoresKernel = "finish_scores";

/// "t8x1a16n4", and as C++ "{.team = 8, …}".
std::string name_of(const EntrySchedule& schedule);
std::string text_of(const EntrySchedule& schedule);
/// "{.type = pumice::ElementType::f16, …}", which kernels over parts have in theirs.
std::string text_of(const GatherReduceSpec& spec);

/// "gather_reduce_sum_f16_weighted_t8x1a16": a team of 8, 1 chunk each, accesses of 16 bytes.
std::string entry_name(const GatherReduceSpec& spec);
std::string entry_name(const EdgeMapSpec& spec);
std::string entry_name(const ScoreGradientSpec& spec);

/// InternalError when the spec is not valid, with the reason.
std::string entry_source(const GatherReduceSpec& spec);
std::string entry_source(const EdgeMapSpec& spec);
std::string entry_source(const ScoreGradientSpec& spec);

}   // namespace pumice::cuda
