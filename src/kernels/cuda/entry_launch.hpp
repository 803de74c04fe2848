// GatherReduce, EdgeMap and ScoreGradient on a device, from tensors to launches.
#pragma once

#include <cstdint>

#include <pumice/shared/entry_spec.h>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/kernels/edge_map.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/kernels/score_gradient.hpp>

#include "jit/kernel_runner.hpp"
#include "plan/space/entry_schedules.hpp"

namespace pumice::cuda {

struct GatherReduceLaunch {
  CsrView pattern;
  ConstTensorView values{};   // [entries, heads]; undefined: ones
  ConstTensorView features;   // [columns, C]
  TensorView output;          // [rows, C]
  TensorView source{};        // max, min: i64 [rows, C]
  /// i64 [columns, C] of the gradient of max and min: an entry counts in the channels whose number
  /// here is its own.
  ConstTensorView picked{};
  /// row_begin of the rows that `features` are of, which are divided by the number of their
  /// entries: the gradient of mean. Null: not divided.
  const std::int64_t* shared_by = nullptr;
  RowAddends added{};   // of sums and means
};
/// `reduction`: sum where `picked` is there. `teams`: of the plan, here as below.
void launch_gather_reduce(jit::KernelRunner& runner, const GatherReduceLaunch& launch,
                          EntryReduction reduction, const TeamSchedule& teams);

struct EdgeDotLaunch {
  CsrView pattern;
  ConstTensorView left;       // [rows, C]
  ConstTensorView right;      // [columns, C]
  TensorView output;          // [entries, heads]
  ConstTensorView picked{};   // i64 [rows, C]: a channel of left counts for the entry it names
  bool averages = false;      // divided by the number of entries of the row
};
void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch,
                     const TeamSchedule& teams);
/// The same by a specification, of a product that is not empty.
void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch,
                     const EdgeMapSpec& spec);

/// Leaky sums, of arguments with `attention`.
void launch_edge_scores(jit::KernelRunner& runner, const EdgeMapArguments& arguments,
                        const TeamSchedule& teams);

/// Shares of the gradient of attention, f32 [rows, C], which are to be added up.
struct AttentionShares {
  Buffer<float> value;
  std::int64_t rows = 0;
};
/// Gradients but that of attention, whose shares it returns where it is wanted.
AttentionShares launch_score_gradient(jit::KernelRunner& runner,
                                      const ScoreGradientArguments& arguments);

}   // namespace pumice::cuda
