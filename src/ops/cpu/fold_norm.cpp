// A norm with given statistics as one multiplication and one addition a channel.
#include <cmath>

#include "ops/cpu/normalization.hpp"

namespace pumice::cpu {

void fold_norm(ConstTensorView mean, ConstTensorView variance, ConstTensorView weight,
               ConstTensorView bias, ConstTensorView added_before, double epsilon, TensorView scale,
               TensorView shift) {
  const auto value = [](const ConstTensorView& tensor, std::int64_t c, double absent) {
    if (!tensor.defined()) return absent;
    return dispatch_floating(tensor.dtype(), "fold_batch_norm",
                             [&]<class T>(T) { return double{widen(tensor.data<T>()[c])}; });
  };
  dispatch_floating(scale.dtype(), "fold_batch_norm", [&]<class T>(T) {
    for (std::int64_t c = 0; c < mean.elements(); ++c) {
      const double factor = value(weight, c, 1) / std::sqrt(value(variance, c, 1) + epsilon);
      const double offset = (value(added_before, c, 0) - value(mean, c, 0)) * factor;
      scale.data<T>()[c] = narrow<T>(static_cast<compute_t<T>>(factor));
      shift.data<T>()[c] = narrow<T>(static_cast<compute_t<T>>(value(bias, c, 0) + offset));
    }
  });
}

}   // namespace pumice::cpu
