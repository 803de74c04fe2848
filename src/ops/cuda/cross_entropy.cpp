// Arguments and launches of cross entropy.
#include "ops/cuda/cross_entropy.hpp"

#include <pumice/ops/cross_entropy_arguments.h>

#include "core/cuda/status.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

LabelledRows labelled(ConstTensorView scores, ConstTensorView labels, const RowCountRef& rows,
                      const CrossEntropyOptions& options) {
  return {.rows = rows,
          .scores = scores.raw(),
          .label = labels.raw(),
          .weight = options.weight.defined() ? options.weight.data<float>() : nullptr,
          .ignored = options.ignored,
          .classes = static_cast<std::int32_t>(scores.extent(1)),
          .smoothing = static_cast<float>(options.smoothing),
          .type = element_type(scores.dtype(), "cross_entropy", "scores"),
          .wide = labels.dtype() == DType::i64};
}

std::int64_t blocks_for(std::int64_t rows, std::int64_t of_block) {
  return (rows + of_block - 1) / of_block;
}

}   // namespace

void cross_entropy(ConstTensorView scores, ConstTensorView labels, const RowCountRef& rows,
                   const CrossEntropyOptions& options, TensorView loss, TensorView weight,
                   TensorView log_sum) {
  jit::DeviceRunner runner = runner_for(scores);
  const std::int64_t blocks = blocks_for(rows.capacity, kLossRows);
  auto partial = runner.make<double>(2 * blocks);
  runner.run(ops_kernel("cross_entropy_rows"), {.blocks = blocks, .threads = kLossThreads},
             CrossEntropyArguments{.of = labelled(scores, labels, rows, options),
                                   .log_sum = log_sum.data<float>(),
                                   .partial = partial.data(),
                                   .status = runner.status(),
                                   .site = status_site("cross_entropy: labels")});
  runner.run(ops_kernel("finish_cross_entropy"), {.blocks = 1, .threads = kFinishLossThreads},
             FinishLossArguments{.rows = rows,
                                 .partial = partial.data(),
                                 .loss = loss.data<float>(),
                                 .weight = weight.data<float>()});
}

void cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels, const RowCountRef& rows,
                            const CrossEntropyOptions& options, ConstTensorView log_sum,
                            ConstTensorView weight, ConstTensorView grad_loss, TensorView output) {
  jit::DeviceRunner runner = runner_for(scores);
  constexpr std::int64_t kRows = kLossThreads / 32;   // a warp each
  runner.run(ops_kernel("cross_entropy_gradient"),
             {.blocks = blocks_for(rows.capacity, kRows), .threads = kLossThreads},
             CrossEntropyGradientArguments{.of = labelled(scores, labels, rows, options),
                                           .log_sum = log_sum.data<float>(),
                                           .grad_loss = grad_loss.data<float>(),
                                           .total = weight.data<float>(),
                                           .out = output.raw()});
}

}   // namespace pumice::cuda
