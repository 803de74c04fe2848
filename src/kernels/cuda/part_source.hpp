// Specifications of kernels over the parts of a pattern as source text.
#pragma once

#include <string>

#include <pumice/shared/part_spec.h>

namespace pumice::cuda {

/// The kernels' names in the sources below.
inline constexpr const char* kGatherPartsKernel = "gather_parts";
inline constexpr const char* kFinishSharedRowsKernel = "finish_shared_rows";
inline constexpr const char* kDotPartsKernel = "dot_parts";

/// "parts_gather_reduce_sum_f16_weighted_t8x1a16n4", "parts_dot_f32_t8x1a16n4".
std::string part_name(const GatherPartsSpec& spec);
std::string part_name(const DotPartsSpec& spec);

/// InternalError when the spec is not valid, with the reason.
std::string part_source(const GatherPartsSpec& spec);
std::string part_source(const DotPartsSpec& spec);

}   // namespace pumice::cuda
