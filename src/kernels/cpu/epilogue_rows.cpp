// The first and the last step of a tile.
#include "kernels/cpu/epilogue_rows.hpp"

#include <algorithm>

namespace pumice::cpu {
namespace {

const std::byte* channel_vector(const ConstTensorView& view, const char* what,
                                std::int64_t channels, DType compute) {
  if (!view.defined()) return nullptr;
  PUMICE_EXPECTS(view.rank() == 1 && view.extent(0) == channels, what, " has shape ",
                 to_string(view.shape()), "; the output has ", channels, " channels");
  PUMICE_EXPECTS(view.dtype() == compute, what, " is ", name_of(view.dtype()), "; give ",
                 name_of(compute), ", in which the sums are kept");
  return static_cast<const std::byte*>(view.raw());
}

}   // namespace

EpilogueRows::EpilogueRows(const MicroKernels& kernels, const Epilogue& epilogue, TensorView output,
                           TensorView partial, const std::int32_t* out_order, std::int64_t channels,
                           std::int64_t groups, std::int64_t group_pitch)
    : kernels_(&kernels),
      out_order_(out_order),
      channels_(channels),
      groups_(groups),
      group_pitch_(group_pitch),
      activation_(epilogue.activation),
      slope_(epilogue.slope) {
  if (partial.defined()) {
    PUMICE_ENSURES(partial.rank() == 2 && partial.extent(1) == channels,
                   to_string(partial.shape()));
    partial_ = static_cast<std::byte*>(partial.raw());
    return;
  }
  PUMICE_EXPECTS(output.rank() == 2 && output.extent(1) == channels, "output of shape ",
                 to_string(output.shape()), " for ", channels, " output channels");
  const DType compute = output.dtype() == DType::f64 ? DType::f64 : DType::f32;
  scale_ = channel_vector(epilogue.scale, "scale", channels, compute);
  shift_ = channel_vector(epilogue.shift, "shift", channels, compute);
  if (epilogue.residual.defined()) {
    PUMICE_EXPECTS(
        epilogue.residual.shape() == output.shape() && epilogue.residual.dtype() == output.dtype(),
        "residual is ", name_of(epilogue.residual.dtype()), ' ',
        to_string(epilogue.residual.shape()), ", the output ", name_of(output.dtype()), ' ',
        to_string(output.shape()), "; they must be alike");
    residual_ = static_cast<const std::byte*>(epilogue.residual.raw());
  }
  output_ = static_cast<std::byte*>(output.raw());
  storage_bytes_ = static_cast<std::int64_t>(size_of(output.dtype()));
}

template <class T>
void EpilogueRows::start(std::int64_t first, std::int64_t rows, T* sums,
                         std::int64_t stride) const {
  if (partial_ == nullptr) {
    std::fill_n(sums, rows * stride, T{});
    return;
  }
  const std::int64_t group = channels_ / groups_;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = reinterpret_cast<const T*>(partial_) + row_of(first + r) * channels_;
    T* row = sums + r * stride;
    for (std::int64_t g = 0; g < groups_; ++g) {
      T* end = std::copy_n(from + g * group, group, row + g * group_pitch_);
      std::fill(end, row + (g + 1) * group_pitch_, T{});
    }
  }
}

template <class T>
void EpilogueRows::finish(std::int64_t first, std::int64_t rows, const T* sums,
                          std::int64_t stride) const {
  const std::int64_t group = channels_ / groups_;
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = row_of(first + r);
    for (std::int64_t g = 0; g < groups_; ++g) {
      const T* from = sums + r * stride + g * group_pitch_;
      const std::int64_t channel = g * group;
      const std::int64_t element = row * channels_ + channel;
      if (partial_ != nullptr) {
        std::copy_n(from, group, reinterpret_cast<T*>(partial_) + element);
        continue;
      }
      FinishRow finish;
      finish.sums = from;
      if (scale_ != nullptr) finish.scale = scale_ + channel * kBytes;
      if (shift_ != nullptr) finish.shift = shift_ + channel * kBytes;
      if (residual_ != nullptr) finish.residual = residual_ + element * storage_bytes_;
      finish.out = output_ + element * storage_bytes_;
      finish.channels = group;
      finish.activation = activation_;
      finish.slope = slope_;
      kernels_->finish(finish);
    }
  }
}

template void EpilogueRows::start(std::int64_t, std::int64_t, float*, std::int64_t) const;
template void EpilogueRows::start(std::int64_t, std::int64_t, double*, std::int64_t) const;
template void EpilogueRows::finish(std::int64_t, std::int64_t, const float*, std::int64_t) const;
template void EpilogueRows::finish(std::int64_t, std::int64_t, const double*, std::int64_t) const;

}   // namespace pumice::cpu
