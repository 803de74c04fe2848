// Goes over all entries, and takes of each the channels that name it.
#include "ops/cpu/picked_entries.hpp"

#include <vector>

#include "kernels/cpu/row_ranges.hpp"

namespace pumice::cpu {

void picked_features_gradient(const CsrView& backwards, ConstTensorView values,
                              ConstTensorView grad_output, ConstTensorView source,
                              TensorView output) {
  const std::int64_t channels = grad_output.extent(1);
  const std::int64_t heads = values.defined() ? values.extent(1) : 1;
  dispatch_floating(grad_output.dtype(), "spmm_features_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    for_rows(backwards, channels, [&](std::int64_t column) {
      std::vector<T> sums(static_cast<std::size_t>(channels));
      for (std::int64_t place = backwards.begin_of(column); place < backwards.end_of(column);
           ++place) {
        const std::int64_t row = backwards.column[static_cast<std::size_t>(place)];
        const std::int64_t number = backwards.number_of(place);
        const std::int64_t* picked = source.data<std::int64_t>() + row * channels;
        const S* gradient = grad_output.data<S>() + row * channels;
        for (std::int64_t c = 0; c < channels; ++c) {
          if (picked[c] != number) continue;
          const T weight = values.defined()
                               ? widen(values.data<S>()[number * heads + c * heads / channels])
                               : T{1};
          sums[static_cast<std::size_t>(c)] += weight * widen(gradient[c]);
        }
      }
      for (std::int64_t c = 0; c < channels; ++c)
        output.data<S>()[column * channels + c] = narrow<S>(sums[static_cast<std::size_t>(c)]);
    });
  });
}

void picked_values_gradient(const CsrView& pattern, ConstTensorView features,
                            ConstTensorView grad_output, ConstTensorView source,
                            TensorView output) {
  const std::int64_t channels = features.extent(1), heads = output.extent(1);
  const std::int64_t of_head = channels / heads;
  dispatch_floating(features.dtype(), "spmm_values_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    for_rows(pattern, channels, [&](std::int64_t row) {
      const std::int64_t* picked = source.data<std::int64_t>() + row * channels;
      const S* gradient = grad_output.data<S>() + row * channels;
      for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place) {
        const S* x =
            features.data<S>() + pattern.column[static_cast<std::size_t>(place)] * channels;
        const std::int64_t number = pattern.number_of(place);
        for (std::int64_t head = 0; head < heads; ++head) {
          T sum{};
          for (std::int64_t c = head * of_head; c < (head + 1) * of_head; ++c) {
            if (picked[c] == number) sum += widen(gradient[c]) * widen(x[c]);
          }
          output.data<S>()[number * heads + head] = narrow<S>(sum);
        }
      }
    });
  });
}

}   // namespace pumice::cpu
