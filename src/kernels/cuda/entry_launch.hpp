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

namespace pumice::cuda {

/// How `channels` of a head are shared out: threads enough for one chunk each, up to a warp's.
EntrySchedule entry_schedule(ElementType type, std::int64_t channels);
/// How products of rows are computed whose heads have so many channels, of which two rows are read
/// for an entry.
EdgeMapSpec edge_dot_spec(ElementType type, std::int64_t channels, bool picked);
/// Of additive attention and of what comes back through it; has_entries: rows of entries are added.
EdgeMapSpec edge_scores_spec(ElementType type, std::int64_t channels, bool has_entries);
EntrySchedule score_gradient_schedule(ElementType type, std::int64_t channels, bool has_entries);

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
};
/// `reduction`: sum where `picked` is there.
void launch_gather_reduce(jit::KernelRunner& runner, const GatherReduceLaunch& launch,
                          EntryReduction reduction);

struct EdgeDotLaunch {
  CsrView pattern;
  ConstTensorView left;       // [rows, C]
  ConstTensorView right;      // [columns, C]
  TensorView output;          // [entries, heads]
  ConstTensorView picked{};   // i64 [rows, C]: a channel of left counts for the entry it names
  bool averages = false;      // divided by the number of entries of the row
};
void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch);
/// The same by another specification than edge_dot_spec gives, of a product that is not empty.
void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch,
                     const EdgeMapSpec& spec);

/// Leaky sums, of arguments with `attention`.
void launch_edge_scores(jit::KernelRunner& runner, const EdgeMapArguments& arguments);

/// Shares of the gradient of attention, f32 [rows, C], which are to be added up.
struct AttentionShares {
  Buffer<float> value;
  std::int64_t rows = 0;
};
/// Gradients but that of attention, whose shares it returns where it is wanted.
AttentionShares launch_score_gradient(jit::KernelRunner& runner,
                                      const ScoreGradientArguments& arguments);

}   // namespace pumice::cuda
