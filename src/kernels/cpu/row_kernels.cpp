// What is done to whole rows beside the products: widening the 16-bit types, depthwise products,
// and the epilogue.
#include "kernels/cpu/multiply.hpp"

#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_kernels.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class S> void widen_row(const void* row, void* out, std::int64_t channels) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const S*>(row);
  auto* to = static_cast<T*>(out);
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes)
    hn::StoreU(load(d, from + c), d, to + c);
  for (; c < channels; ++c)
    to[c] = widen(from[c]);
}

template <class S>
void add_product_row(const void* row, const void* weight, void* sums, std::int64_t channels) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const S*>(row);
  const auto* w = static_cast<const T*>(weight);
  auto* sum = static_cast<T*>(sums);
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    hn::StoreU(hn::MulAdd(load(d, x + c), hn::LoadU(d, w + c), hn::LoadU(d, sum + c)), d, sum + c);
  }
  for (; c < channels; ++c)
    sum[c] = std::fma(widen(x[c]), w[c], sum[c]);
}

/// Where x is NaN, x; so that an activation never hides one.
template <class D, class V> V keep_nan(D, V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// 1 / (1 + exp(-x)) without overflow: exp is only taken of numbers <= 0.
template <class D, class V> V sigmoid(D d, V x) {
  const V one = hn::Set(d, static_cast<hn::TFromD<D>>(1));
  const V t = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), t, one);
  return hn::Div(numerator, hn::Add(one, t));
}

template <class D, class V, class Function> V each_lane(D d, V x, Function function) {
  HWY_ALIGN hn::TFromD<D> lane[hn::MaxLanes(D())];
  hn::Store(x, d, lane);
  for (auto& value : lane)
    value = function(value);
  return hn::Load(d, lane);
}

template <class D, class V, class T = hn::TFromD<D>>
V activated(D d, V x, Activation activation, double slope) {
  const V zero = hn::Zero(d);
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return hn::IfThenElse(hn::Lt(x, zero), zero, x);
    case Activation::leaky_relu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, hn::Set(d, static_cast<T>(slope))), x);
    case Activation::sigmoid: return keep_nan(d, x, sigmoid(d, x));
    case Activation::silu: return keep_nan(d, x, hn::Mul(x, sigmoid(d, x)));
    case Activation::gelu:
      return each_lane(d, x, [](T value) {
        constexpr T kHalfRoot = static_cast<T>(0.70710678118654752440);
        return static_cast<T>(0.5) * value * (T{1} + std::erf(value * kHalfRoot));
      });
    case Activation::tanh: return each_lane(d, x, [](T value) { return std::tanh(value); });
  }
  return x;
}

template <class S> void finish_row(const FinishRow& row) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  using V = Vector<T>;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  constexpr auto kStep = static_cast<std::int64_t>(kLanes);
  const auto* sums = static_cast<const T*>(row.sums);
  const auto* scale = static_cast<const T*>(row.scale);
  const auto* shift = static_cast<const T*>(row.shift);
  const auto* residual = static_cast<const S*>(row.residual);
  auto* out = static_cast<S*>(row.out);
  const auto finished = [&](V y, const T* scales, const T* shifts, const S* residuals) {
    if (scales != nullptr) y = hn::Mul(y, hn::LoadU(d, scales));
    if (shifts != nullptr) y = hn::Add(y, hn::LoadU(d, shifts));
    if (residuals != nullptr) y = hn::Add(y, load(d, residuals));
    return activated(d, y, row.activation, row.slope);
  };
  const auto at = [](const auto* base, std::int64_t c) { return base ? base + c : nullptr; };
  std::int64_t c = 0;
  for (; c + kStep <= row.channels; c += kStep) {
    store(d, finished(hn::LoadU(d, sums + c), at(scale, c), at(shift, c), at(residual, c)),
          out + c);
  }
  if (c == row.channels) return;
  // A row's end that fills no vector: the same arithmetic on copies.
  const auto left = static_cast<std::size_t>(row.channels - c);
  T sum[kLanes] = {}, scales[kLanes] = {}, shifts[kLanes] = {};
  S residuals[kLanes] = {}, result[kLanes] = {};
  std::memcpy(sum, sums + c, left * sizeof(T));
  if (scale) std::memcpy(scales, scale + c, left * sizeof(T));
  if (shift) std::memcpy(shifts, shift + c, left * sizeof(T));
  if (residual) std::memcpy(residuals, residual + c, left * sizeof(S));
  store(d,
        finished(hn::LoadU(d, sum), scale ? scales : nullptr, shift ? shifts : nullptr,
                 residual ? residuals : nullptr),
        result);
  std::memcpy(out + c, result, left * sizeof(S));
}

void row_kernels(MicroKernels& table, DType storage) {
  dispatch_floating(storage, "row kernels", [&](auto zero) {
    using S = decltype(zero);
    table.widen = widen_row<S>;
    table.add_product = add_product_row<S>;
    table.finish = finish_row<S>;
  });
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pumice::cpu {

HWY_EXPORT(row_kernels);

void add_row_kernels(MicroKernels& table, DType storage) {
  HWY_DYNAMIC_DISPATCH(row_kernels)(table, storage);
}

}   // namespace pumice::cpu
#endif
