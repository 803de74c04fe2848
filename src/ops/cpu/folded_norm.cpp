// A norm with given statistics as one multiplication and one addition a channel.
#include "ops/cpu/folded_norm.hpp"

#include <cmath>

namespace pumice::cpu {
namespace {

double value(const ConstTensorView& tensor, std::int64_t c, double absent) {
  if (!tensor.defined()) return absent;
  return dispatch_floating(tensor.dtype(), "fold_batch_norm",
                           [&]<class T>(T) { return double{widen(tensor.data<T>()[c])}; });
}

double scale_of(const SettledNorm& norm, std::int64_t c) {
  return value(norm.weight, c, 1) / std::sqrt(value(norm.variance, c, 1) + norm.epsilon);
}

double shift_of(const SettledNorm& norm, std::int64_t c) {
  const double offset = value(norm.added_before, c, 0) - value(norm.mean, c, 0);
  const double own = value(norm.bias, c, 0) + offset * scale_of(norm, c);
  return norm.shortcut == nullptr ? own : own + shift_of(*norm.shortcut, c);
}

void fold_norm(const SettledNorm& norm, const FoldedInto& result) {
  dispatch_floating(result.scale.dtype(), "fold_batch_norm", [&]<class T>(T) {
    for (std::int64_t c = 0; c < norm.mean.elements(); ++c) {
      result.scale.data<T>()[c] = narrow<T>(static_cast<compute_t<T>>(scale_of(norm, c)));
      result.shift.data<T>()[c] = narrow<T>(static_cast<compute_t<T>>(shift_of(norm, c)));
    }
  });
}

}   // namespace

void fold_norms(std::span<const SettledNorm> norms, std::span<const FoldedInto> results) {
  for (std::size_t i = 0; i < norms.size(); ++i)
    fold_norm(norms[i], results[i]);
}

}   // namespace pumice::cpu
