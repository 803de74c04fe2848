// Vectors of the compute type from and to rows of the storage type. For files that are compiled
// once for each instruction set (targets.hpp), which include it after <hwy/highway.h>.
#if defined(PUMICE_STORAGE_VECTORS_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PUMICE_STORAGE_VECTORS_HPP
#undef PUMICE_STORAGE_VECTORS_HPP
#else
#define PUMICE_STORAGE_VECTORS_HPP
#endif

#include <cstdint>

#include <pumice/core/half.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> using Vector = hn::Vec<hn::ScalableTag<T>>;

// Storage -> compute vector.
inline Vector<float> load(hn::ScalableTag<float> d, const float* from) {
  return hn::LoadU(d, from);
}
inline Vector<double> load(hn::ScalableTag<double> d, const double* from) {
  return hn::LoadU(d, from);
}
inline Vector<float> load(hn::ScalableTag<float> d, const Half* from) {
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const hn::Rebind<std::uint16_t, decltype(d)> bits;
  return hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(bits, &from->bits)));
}
inline Vector<float> load(hn::ScalableTag<float> d, const BFloat16* from) {
  const hn::Rebind<std::uint32_t, decltype(d)> wide;
  const hn::Rebind<std::uint16_t, decltype(d)> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(bits, &from->bits))));
}

// Compute vector -> storage, to nearest, ties to even.
inline void store(hn::ScalableTag<float> d, Vector<float> value, float* to) {
  hn::StoreU(value, d, to);
}
inline void store(hn::ScalableTag<double> d, Vector<double> value, double* to) {
  hn::StoreU(value, d, to);
}
inline void store(hn::ScalableTag<float> d, Vector<float> value, Half* to) {
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const hn::Rebind<std::uint16_t, decltype(d)> bits;
  hn::StoreU(hn::BitCast(bits, hn::DemoteTo(half, value)), bits, &to->bits);
}
inline void store(hn::ScalableTag<float> d, Vector<float> value, BFloat16* to) {
  // Highway 1.0 demotes to bf16 by truncation, so the rounding is done on the bits.
  const hn::Rebind<std::uint32_t, decltype(d)> wide;
  const hn::Rebind<std::uint16_t, decltype(d)> bits;
  const auto raw = hn::BitCast(wide, value);
  const auto upper = hn::ShiftRight<16>(raw);
  const auto tie = hn::And(upper, hn::Set(wide, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(raw, hn::Add(hn::Set(wide, 0x7fffu), tie)));
  const auto quiet_nan = hn::Or(upper, hn::Set(wide, 0x40u));
  const auto is_nan = hn::RebindMask(wide, hn::IsNaN(value));
  const auto kept = hn::IfThenElse(is_nan, quiet_nan, rounded);
  // Lanes are below 2^16 but DemoteTo saturates from signed.
  const hn::Rebind<std::int32_t, decltype(d)> signed_wide;
  hn::StoreU(hn::DemoteTo(bits, hn::BitCast(signed_wide, kept)), bits, &to->bits);
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
