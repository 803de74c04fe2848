// Launches of the kernel that folds norms.
#include "ops/cuda/folded_norm.hpp"

#include <algorithm>

#include <pumice/ops/elementwise_arguments.h>

#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

ElementType type_of(const ConstTensorView& parameter) {
  return parameter.defined() ? element_type(parameter.dtype(), "fold_batch_norm", "a parameter")
                             : ElementType::f32;
}

ElementType parameter_type(const SettledNorm& norm) {
  return type_of(norm.weight.defined() ? norm.weight : norm.bias);
}

ShortcutNormArguments shortcut_of(const SettledNorm* norm) {
  if (norm == nullptr) return {};
  return {.weight = norm->weight.raw(),
          .bias = norm->bias.raw(),
          .mean = norm->mean.raw(),
          .variance = norm->variance.raw(),
          .epsilon = norm->epsilon,
          .parameter_type = parameter_type(*norm),
          .statistic_type = type_of(norm->mean)};
}

FoldArguments arguments_of(const SettledNorm& norm, const FoldedInto& result) {
  return {.weight = norm.weight.raw(),
          .bias = norm.bias.raw(),
          .mean = norm.mean.raw(),
          .variance = norm.variance.raw(),
          .before = norm.added_before.raw(),
          .scale = result.scale.data<float>(),
          .shift = result.shift.data<float>(),
          .epsilon = norm.epsilon,
          .channels = static_cast<std::int32_t>(norm.mean.elements()),
          .parameter_type = parameter_type(norm),
          .statistic_type = type_of(norm.mean),
          .before_type = type_of(norm.added_before),
          .shortcut = shortcut_of(norm.shortcut)};
}

}   // namespace

void fold_norms(std::span<const SettledNorm> norms, std::span<const FoldedInto> results) {
  jit::DeviceRunner runner = runner_for(norms.front().mean);
  while (!norms.empty()) {
    const std::size_t size = std::min<std::size_t>(norms.size(), kMostFoldedNorms);
    FoldNormsArguments arguments;
    std::int64_t blocks = 1;
    for (std::size_t i = 0; i < size; ++i) {
      arguments.norm[i] = arguments_of(norms[i], results[i]);
      const std::int64_t channels = arguments.norm[i].channels;
      blocks = std::max(blocks, (channels + kElementThreads - 1) / kElementThreads);
    }
    runner.run(ops_kernel("fold_norms"),
               {.blocks = blocks, .blocks_y = static_cast<int>(size), .threads = kElementThreads},
               arguments);
    norms = norms.subspan(size);
    results = results.subspan(size);
  }
}

}   // namespace pumice::cuda
