// Goes over all entries, and takes of each the channels that name it.
#include "ops/cpu/picked_entries.hpp"

#include <limits>

#include <pumice/core/buffer.hpp>
#include <pumice/core/parallel.hpp>

#include "kernels/cpu/picked_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice::cpu {

namespace {

/// Numbers of entries in 32 bits, which are read once for each entry of their row; those that are
/// none become -1, which is none either.
Buffer<std::int32_t> narrowed(ConstTensorView source, std::int64_t entries) {
  constexpr std::int64_t kGrain = 1 << 15;
  Buffer<std::int32_t> result(source.elements());
  const std::int64_t* const from = source.data<std::int64_t>();
  parallel_for(source.elements(), kGrain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      result[i] = from[i] >= 0 && from[i] < entries ? static_cast<std::int32_t>(from[i]) : -1;
  });
  return result;
}

/// Calls `sum` for each column and head with what was picked of the head's channels.
template <class Number, class Sum>
void sum_columns(const CsrView& backwards, const HeadRows& rows, const Number* picked, Sum sum,
                 TensorView output, std::int64_t work) {
  const std::int64_t channels = output.extent(1);
  const auto add_up = [&](std::int64_t column) {
    for (std::int64_t head = 0; head < rows.heads(); ++head) {
      const std::int64_t from = head * rows.channels();
      sum(rows.of(column, head), picked + from, element_at(output, column * channels + from));
    }
  };
  for_rows(backwards, channels, add_up, work);
}

}   // namespace

void picked_features_gradient(const CsrView& backwards, ConstTensorView values,
                              ConstTensorView grad_output, ConstTensorView source,
                              TensorView output, const RangeSchedule& schedule) {
  constexpr std::int64_t kOften = 4;   // reads of a number that narrowing it pays for
  const HeadRows rows(backwards, grad_output, values, values.defined() ? values.extent(1) : 1,
                      schedule.ahead);
  const PickedKernels& kernels = picked_kernels(grad_output.dtype());
  const std::int64_t entries = backwards.entries();
  const bool fits = entries <= std::int64_t{std::numeric_limits<std::int32_t>::max()};
  if (fits && entries >= kOften * source.extent(0)) {
    const Buffer<std::int32_t> picked = narrowed(source, entries);
    sum_columns(backwards, rows, picked.data(), kernels.sum_narrow, output, schedule.work);
  } else {
    sum_columns(backwards, rows, source.data<std::int64_t>(), kernels.sum, output, schedule.work);
  }
}

void picked_values_gradient(const CsrView& pattern, ConstTensorView features,
                            ConstTensorView grad_output, ConstTensorView source, TensorView output,
                            const RangeSchedule& schedule) {
  const HeadRows rows(pattern, features, {}, output.extent(1), schedule.ahead);
  const PickedKernels& kernels = picked_kernels(features.dtype());
  const std::int64_t channels = features.extent(1);
  const auto multiply = [&](std::int64_t row) {
    for (std::int64_t head = 0; head < rows.heads(); ++head) {
      const std::int64_t from = row * channels + head * rows.channels();
      kernels.dot(rows.of(row, head), element_at(grad_output, from),
                  source.data<std::int64_t>() + from, element_at(output, head), rows.heads());
    }
  };
  for_rows(pattern, channels, multiply, schedule.work);
}

}   // namespace pumice::cpu
