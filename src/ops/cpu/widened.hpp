// Loops over elements in the type they are computed in: half types pass through a small buffer that
// stays in L1, float and double are read and written where they are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <pumice/core/dtype.hpp>
#include <pumice/core/parallel.hpp>
#if defined(__F16C__)
#include <immintrin.h>
#endif

// The iterations of the next loop do not depend on each other (its arrays are equal or disjoint).
#if defined(__clang__)
#define PUMICE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PUMICE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace pumice::cpu {

template <class T> inline constexpr bool is_wide = std::is_same_v<T, compute_t<T>>;

inline constexpr std::int64_t kPiece = 1024;             // elements widened at once: 4 KiB, in L1
inline constexpr std::int64_t kElementGrain = 1 << 15;   // elements a task: 10 µs and more

/// Rows of `elements` elements a task takes, from the shape alone.
inline std::int64_t row_grain(std::int64_t elements) {
  return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, elements));
}

template <class T> inline void widen_row(const T* from, compute_t<T>* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, Half>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
    }
  }
#endif
  for (; i < n; ++i)
    to[i] = widen(from[i]);
}

template <class T> inline void narrow_row(const compute_t<T>* from, T* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, Half>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
    }
  }
#endif
  for (; i < n; ++i)
    to[i] = narrow<T>(from[i]);
}

/// Asks for the first `elements` of a row that will be read soon, up to 512 bytes: gathers of rows
/// in chance order wait for memory otherwise, and with this take half as long.
template <class T> inline void prefetch_row(const T* row, std::int64_t elements) {
  const auto* const bytes = reinterpret_cast<const char*>(row);
  const std::int64_t size = std::min<std::int64_t>(512, elements * std::int64_t{sizeof(T)});
  for (std::int64_t at = 0; at < size; at += 64)
    __builtin_prefetch(bytes + at);
}

/// `from` itself where it needs no widening, else its n elements widened into `scratch`.
template <class T>
inline const compute_t<T>* widened(const T* from, [[maybe_unused]] compute_t<T>* scratch,
                                   [[maybe_unused]] std::int64_t n) {
  if constexpr (is_wide<T>) {
    return from;
  } else {
    widen_row(from, scratch, n);
    return scratch;
  }
}

/// Calls body(inputs…, n) with n elements from each of `inputs`, widened into `scratch`, which has
/// room for `stride` elements of each.
template <class C, class Body, class... Inputs>
void with_widened(C* scratch, std::int64_t stride, std::int64_t n, const Body& body,
                  const Inputs*... inputs) {
  [&]<std::int64_t... I>(std::integer_sequence<std::int64_t, I...>) {
    body(widened(inputs, scratch + I * stride, n)..., n);
  }
  (std::make_integer_sequence<std::int64_t, static_cast<std::int64_t>(sizeof...(Inputs))>{});
}

/// Calls body(result, inputs…, n) for pieces of `n` elements of the compute type.
template <class T, class Body, class... Inputs>
void for_pieces(T* out, std::int64_t n, const Body& body, const Inputs*... inputs) {
  if constexpr (is_wide<T>) {
    body(out, inputs..., n);
  } else {
    compute_t<T> result[kPiece];
    compute_t<T> scratch[sizeof...(Inputs) * static_cast<std::size_t>(kPiece)];
    for (std::int64_t begin = 0; begin < n; begin += kPiece) {
      const std::int64_t size = std::min(kPiece, n - begin);
      with_widened(
          scratch, kPiece, size, [&](auto... wide) { body(result, wide...); }, (inputs + begin)...);
      narrow_row(result, out + begin, size);
    }
  }
}

/// The same in parallel over a whole array.
template <class T, class Body, class... Inputs>
void for_elements(T* out, std::int64_t elements, const Body& body, const Inputs*... inputs) {
  parallel_for(elements, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for_pieces(out + begin, end - begin, body, (inputs + begin)...);
  });
}

}   // namespace pumice::cpu
