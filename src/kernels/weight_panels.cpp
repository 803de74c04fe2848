// Weights in the order in which the register tiles read them.
#include <pumice/kernels/weight_panels.hpp>

#include <algorithm>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// One offset of one group of W or Wᵀ, as a matrix [rows of the product's input, columns].
template <class S> struct WeightSlice {
  const S* first;
  std::int64_t row_step;
  std::int64_t column_step;
  S at(std::int64_t row, std::int64_t column) const {
    return first[row * row_step + column * column_step];
  }
};

/// [columns / panel][rows / step][panel][step], zeros beyond the matrix. `step` is 1, or 2 for
/// processors that multiply pairs.
template <class T, class S>
void pack(const WeightSlice<S>& slice, std::int64_t rows, std::int64_t padded_rows,
          std::int64_t columns, std::int64_t panel, std::int64_t step, T* out) {
  for (std::int64_t first = 0; first < columns; first += panel) {
    for (std::int64_t row = 0; row < padded_rows; row += step) {
      for (std::int64_t j = first; j < first + panel; ++j) {
        for (std::int64_t s = row; s < row + step; ++s, ++out) {
          if (s >= rows || j >= columns) {
            *out = T{};
          } else if constexpr (std::is_same_v<T, S>) {
            *out = slice.at(s, j);
          } else {
            *out = widen(slice.at(s, j));
          }
        }
      }
    }
  }
}

}   // namespace

WeightPanels::WeightPanels(ConstTensorView weight, std::int64_t groups, bool transpose)
    : groups_(groups), dtype_(weight.dtype()), defined_(true) {
  PUMICE_EXPECTS(weight.rank() == 3, "weight has shape ", to_string(weight.shape()),
                 "; a convolution takes [offsets, in channels / groups, out channels]");
  const std::int64_t weight_rows = weight.extent(1);
  const std::int64_t weight_columns = weight.extent(2);
  PUMICE_EXPECTS(groups >= 1 && weight_columns % groups == 0, "groups = ", groups,
                 " does not divide the weight's ", weight_columns, " output channels");
  offsets_ = weight.extent(0);
  in_channels_ = transpose ? weight_columns : weight_rows * groups;
  out_channels_ = transpose ? weight_rows * groups : weight_columns;
  const std::int64_t rows = in_channels_ / groups;
  const std::int64_t columns = out_channels_ / groups;
  depthwise_ = groups > 1 && rows == 1 && columns == 1;
  bf16_pairs_ = dtype_ == DType::bf16 && !depthwise_ && cpu::bf16_pair_kernels() != nullptr;
  const auto& kernels = bf16_pairs_ ? *cpu::bf16_pair_kernels() : cpu::micro_kernels(dtype_);
  panel_ = kernels.panel();
  const std::int64_t step = kernels.channel_step;
  const std::int64_t padded_rows = round_up(rows, kernels.channel_multiple);
  slice_ = depthwise_ ? 1 : padded_rows * round_up(columns, panel_);

  dispatch_floating(dtype_, "WeightPanels", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    const S* from = weight.data<S>();
    const std::int64_t element = bf16_pairs_ ? static_cast<std::int64_t>(sizeof(BFloat16))
                                             : static_cast<std::int64_t>(sizeof(T));
    data_ = Buffer<std::byte>(groups_ * offsets_ * slice_ * element);
    // [groups][offsets][slice]; depthwise [offsets][groups], where a slice is one number.
    parallel_for(
        groups_ * offsets_, depthwise_ ? 4096 : 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            if (depthwise_) {
              reinterpret_cast<T*>(data_.data())[i] = widen(from[i]);
              continue;
            }
            const std::int64_t group = i / offsets_;
            const S* first = from + (i % offsets_) * weight_rows * weight_columns +
                             group * (weight_columns / groups_);
            const WeightSlice<S> slice = transpose ? WeightSlice<S>{first, 1, weight_columns}
                                                   : WeightSlice<S>{first, weight_columns, 1};
            if (bf16_pairs_) {
              pack(slice, rows, padded_rows, columns, panel_, step,
                   reinterpret_cast<S*>(data_.data()) + i * slice_);
            } else {
              pack(slice, rows, padded_rows, columns, panel_, step,
                   reinterpret_cast<T*>(data_.data()) + i * slice_);
            }
          }
        });
  });
}

std::string_view kernel_target() {
  return cpu::micro_kernels(DType::f32).target;
}
bool multiplies_bf16() {
  return cpu::bf16_pair_kernels() != nullptr;
}

bool WeightPanels::is_of(const ConstTensorView& weight, std::int64_t groups, bool transpose) const {
  if (!defined_ || weight.rank() != 3) return false;
  const std::int64_t rows = weight.extent(1) * groups, columns = weight.extent(2);
  return dtype_ == weight.dtype() && groups_ == groups && offsets_ == weight.extent(0) &&
         in_channels_ == (transpose ? columns : rows) &&
         out_channels_ == (transpose ? rows : columns);
}

}   // namespace pumice
