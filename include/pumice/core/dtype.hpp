// The element types a tensor can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <pumice/core/error.hpp>
#include <pumice/core/half.hpp>

namespace pumice {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, u8 };

/// Bytes of one element.
std::size_t size_of(DType type);
/// "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "u8".
std::string_view name_of(DType type);
/// The inverse of `name_of`, also taking "fp32"-style and "float32"-style spellings; UserError for
/// others.
DType parse_dtype(std::string_view name);
bool is_floating(DType type);

template <class T> struct DTypeOf;
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<Half> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::i16; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::u8; };
template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;

/// Calls `body(T{})` with the storage type of a floating `type`: the one place where a value
/// becomes a template argument. `what` names the operator in the error for other types.
template <class Body> decltype(auto) dispatch_floating(DType type, const char* what, Body&& body) {
  switch (type) {
    case DType::f64: return body(double{});
    case DType::f32: return body(float{});
    case DType::f16: return body(Half{});
    case DType::bf16: return body(BFloat16{});
    default: break;
  }
  detail::raise_user(what, ": dtype = ", name_of(type), "; features are f64, f32, f16 or bf16");
}

/// Widening and narrowing between a storage type and the type it is computed in
/// (double for double, float for all others).
template <class T> struct ComputeOf { using type = float; };
template <> struct ComputeOf<double> { using type = double; };
template <class T> using compute_t = typename ComputeOf<T>::type;

inline double widen(double value) {
  return value;
}
inline float widen(float value) {
  return value;
}
inline float widen(Half value) {
  return to_float(value);
}
inline float widen(BFloat16 value) {
  return to_float(value);
}

template <class T> T narrow(compute_t<T> value);
template <> inline double narrow<double>(double value) {
  return value;
}
template <> inline float narrow<float>(float value) {
  return value;
}
template <> inline Half narrow<Half>(float value) {
  return to_half(value);
}
template <> inline BFloat16 narrow<BFloat16>(float value) {
  return to_bfloat16(value);
}

}   // namespace pumice
