// Weight gradient specifications as source text.
#pragma once

#include <string>

#include <pumice/shared/gradient_spec.h>

namespace pumice::cuda {

/// The kernels' names in the sources below.
inline constexpr const char* kGradientKernel = "weight_gradient";
inline constexpr const char* kSumSlotsKernel = "sum_slots";

/// "gradient_wgmma_bf16_64x64_64x64x64_s6".
std::string gradient_name(const GradientSpec& spec);

/// InternalError when the spec is not valid, with the reason.
std::string gradient_source(const GradientSpec& spec);

/// Adds slots into a result of this type (SumSlotsArguments).
std::string sum_slots_source(ElementType output);

}   // namespace pumice::cuda
