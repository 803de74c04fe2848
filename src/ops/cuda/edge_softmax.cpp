#include "ops/cuda/edge_softmax.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include <pumice/ops/edge_softmax_arguments.h>

#include "graphs/cuda/balance.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

/// As many threads as an average row has entries.
std::int32_t team_for(const CsrView& pattern) {
  const std::int64_t mean = pattern.entries() / std::max<std::int64_t>(pattern.rows, 1);
  return static_cast<std::int32_t>(std::min<std::uint64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(mean, 1))), 32));
}

EdgeSoftmaxArguments arguments_for(const CsrView& pattern, ConstTensorView like) {
  return {.pattern = pattern_ref(pattern),
          .heads = static_cast<std::int32_t>(like.extent(1)),
          .team = team_for(pattern),
          .type = element_type(like.dtype(), "edge_softmax", "scores")};
}

EdgeScoresRef ref(const EdgeScores& scores) {
  return {.target = scores.target.raw(),
          .source = scores.source.raw(),
          .entry = scores.entry.raw(),
          .slope = static_cast<float>(scores.negative_slope)};
}

/// `kernel` for rows, and "…_long" for those that are listed as long.
void launch(const char* kernel, const std::string& long_kernel, const CsrView& pattern,
            ConstTensorView like, const EdgeSoftmaxArguments& arguments) {
  const std::int64_t items = pattern.rows * arguments.heads;
  if (items == 0) return;
  jit::DeviceRunner runner = runner_for(like);
  runner.run(ops_kernel(kernel),
             {.blocks = (items * arguments.team + kEdgeThreads - 1) / kEdgeThreads,
              .threads = kEdgeThreads},
             arguments);
  if (pattern.long_rows.counts == nullptr) return;
  const std::int64_t most = most_long_rows(pattern.entries()) * arguments.heads;
  runner.run(ops_kernel(long_kernel.c_str()), {.blocks = most, .threads = kLongEdgeThreads},
             arguments);
}

}   // namespace

void edge_softmax(const CsrView& pattern, const EdgeScores& scores, TensorView output) {
  EdgeSoftmaxArguments arguments = arguments_for(pattern, output);
  arguments.scores = ref(scores);
  arguments.result = output.raw();
  launch("edge_softmax", "edge_softmax_long", pattern, output, arguments);
}

void edge_softmax_gradient(const CsrView& pattern, const EdgeScores& scores, ConstTensorView output,
                           ConstTensorView grad_output, TensorView gradient) {
  EdgeSoftmaxArguments arguments = arguments_for(pattern, output);
  arguments.scores = ref(scores);
  arguments.output = output.raw();
  arguments.grad = grad_output.raw();
  arguments.result = gradient.raw();
  launch("edge_softmax_gradient", "edge_softmax_gradient_long", pattern, output, arguments);
}

void sum_entries(const CsrView& pattern, ConstTensorView values, TensorView sums) {
  EdgeSoftmaxArguments arguments = arguments_for(pattern, values);
  arguments.grad = values.raw();
  arguments.result = sums.raw();
  launch("sum_entries", "sum_entries_long", pattern, values, arguments);
}

}   // namespace pumice::cuda
