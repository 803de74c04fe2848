// ScoreGradient on the CPU: a row at a time, head by head. Ranges of rows have shares of the
// gradient of attention, which are added up in their order.
#include <pumice/kernels/score_gradient.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/leaky_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {
namespace {

/// Most ranges, and so shares of C numbers each.
constexpr std::int64_t kMostRanges = 256;
/// Channels of entries of a range at least: some 100 us.
constexpr std::int64_t kWork = std::int64_t{1} << 18;

std::int64_t work_of_range(const CsrView& pattern, std::int64_t channels) {
  const std::int64_t all = pattern.entries() + pattern.rows;
  return std::max(
      {kWork / std::max<std::int64_t>(channels, 1), all / kMostRanges, std::int64_t{1}});
}

void gradient_of_row(const ScoreGradientArguments& arguments, const cpu::HeadRows& rows,
                     std::int64_t row, void* share, std::int64_t bytes_of_share) {
  const cpu::LeakyKernels& kernels = cpu::leaky_kernels(arguments.own.dtype());
  const std::int64_t channels = arguments.own.extent(1);
  for (std::int64_t head = 0; head < rows.heads(); ++head) {
    const std::int64_t from = head * rows.channels();
    const std::int64_t at = row * channels + from;
    kernels.gradient(
        rows.of(row, head),
        {.own = cpu::element_at(arguments.own, at),
         .attention = cpu::element_at(arguments.attention, from),
         .entry = cpu::element_at(arguments.entry, from),
         .slope = arguments.negative_slope},
        {.own = cpu::element_at(arguments.output, at),
         .entry = cpu::element_at(arguments.grad_entry, from),
         .attention =
             share == nullptr ? nullptr : static_cast<std::byte*>(share) + from * bytes_of_share});
  }
}

}   // namespace

void score_gradient(const ScoreGradientArguments& arguments) {
  const cpu::HeadRows rows(arguments.pattern, arguments.other, arguments.grad,
                           arguments.grad.extent(1));
  const auto channels = static_cast<std::size_t>(arguments.own.extent(1));
  const cpu::RowRanges ranges(arguments.pattern,
                              work_of_range(arguments.pattern, arguments.own.extent(1)));
  dispatch_floating(arguments.own.dtype(), "score_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    const bool shared = arguments.grad_attention.defined();
    const auto count = static_cast<std::size_t>(ranges.count());
    std::vector<T> shares(shared ? count * channels : 0);
    parallel_for(static_cast<std::int64_t>(count), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t range = first; range < last; ++range) {
        T* const share =
            shared ? shares.data() + static_cast<std::size_t>(range) * channels : nullptr;
        const std::int64_t end = ranges.begin_of(range + 1);
        for (std::int64_t row = ranges.begin_of(range); row < end; ++row)
          gradient_of_row(arguments, rows, row, share, sizeof(T));
      }
    });
    if (!shared) return;
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::size_t range = 0; range < count; ++range)
        sum += static_cast<double>(shares[range * channels + c]);
      arguments.grad_attention.data<S>()[c] = narrow<S>(static_cast<T>(sum));
    }
  });
}

}   // namespace pumice
