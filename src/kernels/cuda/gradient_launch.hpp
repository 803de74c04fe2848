// From a weight gradient's specification, or a depthwise convolution, to launches.
#pragma once

#include <cstdint>

#include <pumice/shared/depthwise_arguments.h>
#include <pumice/shared/gradient_spec.h>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// dW[k] = Σ over the pairs of offset k: xᵀ · dy.
struct WeightGradient {
  PairListRef pairs;
  const void* input = nullptr;           // [in rows, groups · in_channels]
  const void* grad = nullptr;            // [out rows, groups · out_channels]
  void* result = nullptr;                // [offsets, in_channels, groups · out_channels]
  ElementType type = ElementType::f32;   // of the result; what is added to is f32
  bool is_zero = false;                  // the result already
  std::int32_t share_blocks = 0;         // thread blocks along x; 0: as many as run at a time
};

/// The sources of the kernels below; they stay as long as the process lives.
const jit::Source& source_of(const GradientSpec& spec);
const jit::Source& sum_slots_source_of(ElementType type);
const jit::Source& depthwise_source_of(ElementType type);

/// Write::add: a fill, unless the result is zero already, and one launch. Write::slots: two
/// launches, and the same bits every time.
void launch_gradient(jit::KernelRunner& runner, const GradientSpec& spec,
                     const WeightGradient& gradient);

/// Enqueues over all tiles that there is room for. `type`: of input, weight and output. Write::add
/// and Write::slots write a partial result in f32 instead of the output.
void launch_depthwise(jit::KernelRunner& runner, ElementType type,
                      const DepthwiseArguments& arguments, Write write = Write::store);

/// Two launches; the same bits every time. Slots of `arguments` are made here. `result`: [offsets,
/// channels] of `result_type`.
void launch_depthwise_gradient(jit::KernelRunner& runner, ElementType type,
                               DepthwiseGradientArguments arguments, ElementType result_type,
                               void* result);

}   // namespace pumice::cuda
