// Scores of additive attention and their gradients: channels in vectors, entry after entry, so that
// the bits of a sum do not depend on how channels are cut.
#include "kernels/cpu/leaky_rows.hpp"

#include <limits>

#include "kernels/cpu/storage_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/leaky_rows.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#include "kernels/cpu/entry_walk.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// attention · leaky(own + right + entry).
template <class S> struct LeakyTerm {
  using T = compute_t<S>;
  LeakyTerm(const LeakyRow& score, std::int64_t of_pitch)
      : own(static_cast<const S*>(score.own)),
        attention(static_cast<const S*>(score.attention)),
        entries(static_cast<const S*>(score.entry)),
        pitch(of_pitch),
        slope(static_cast<T>(score.slope)) {}

  void enter(std::int64_t number) {
    if (entries != nullptr) entry = entries + number * pitch;
  }
  Vector<T> sum_at(std::int64_t c, Vector<T> right) const {
    const hn::ScalableTag<T> d;
    const auto z = hn::Add(load(d, own + c), right);
    return entry == nullptr ? z : hn::Add(z, load(d, entry + c));
  }
  T sum_at_one(std::int64_t c, T right) const {
    const T z = widen(own[c]) + right;
    return entry == nullptr ? z : z + widen(entry[c]);
  }
  /// value, or slope · value where `z` is not above 0.
  Vector<T> slanted(Vector<T> z, Vector<T> value) const {
    const hn::ScalableTag<T> d;
    return hn::IfThenElse(hn::Gt(z, hn::Zero(d)), value, hn::Mul(value, hn::Set(d, slope)));
  }
  T slanted_one(T z, T value) const { return z > 0 ? value : value * slope; }

  /// Of minus infinity itself: times a slope of 0 it is NaN.
  Vector<T> leaky(Vector<T> z) const { return hn::IfThenElse(is_lowest(z), z, slanted(z, z)); }
  T leaky_one(T z) const { return z == kLowest ? z : slanted_one(z, z); }
  /// What the gradient of attention is made of: minus infinity, which has no share, adds nothing.
  static Vector<T> finite(Vector<T> z) { return hn::IfThenZeroElse(is_lowest(z), z); }
  static T finite_one(T z) { return z == kLowest ? 0 : z; }

  Vector<T> add(std::int64_t c, Vector<T> right, Vector<T> sum) const {
    const auto z = sum_at(c, right);
    return hn::MulAdd(load(hn::ScalableTag<T>(), attention + c), leaky(z), sum);
  }
  T add_one(std::int64_t c, T right, T sum) const {
    const T z = sum_at_one(c, right);
    return sum + widen(attention[c]) * leaky_one(z);
  }

  const S* own;
  const S* attention;
  const S* entries;
  std::int64_t pitch;
  T slope;
  const S* entry = nullptr;

 private:
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();
  static auto is_lowest(Vector<T> z) { return hn::Eq(z, hn::Set(hn::ScalableTag<T>(), kLowest)); }
};

template <class S>
void leaky_row(const EntryRow& row, const LeakyRow& score, void* output,
               std::int64_t output_pitch) {
  map_row<S>(row, LeakyTerm<S>(score, row.pitch), output, output_pitch);
}

/// The gradient of `kVectors` vectors of channels from `from` on: the sum over the entries of
/// g · leaky'(z), and of the same times z = g · leaky(z).
template <class S, std::size_t kVectors>
void gradient_channels(const Entries<S>& entries, LeakyTerm<S> term, std::int64_t from,
                       const LeakyGradient& to) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  Vector<T> sums[kVectors], shares[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v)
    sums[v] = shares[v] = hn::Zero(d);
  for (std::int64_t e = 0; e < entries.row.entries; ++e) {
    const std::int64_t number = entries.row.number_of(e);
    const auto g = hn::Set(d, entries.weight(e));
    const S* x = entries.features(e);
    entries.prefetch(e, from, kVectors * kLanes);
    term.enter(number);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::int64_t c = from + static_cast<std::int64_t>(v) * kLanes;
      const auto z = term.sum_at(c, load(d, x + c));
      const auto slanted = term.slanted(z, g);
      sums[v] = hn::Add(sums[v], slanted);
      shares[v] = hn::MulAdd(slanted, term.finite(z), shares[v]);
      if (to.entry != nullptr)
        store(d, hn::Mul(slanted, load(d, term.attention + c)),
              static_cast<S*>(to.entry) + number * term.pitch + c);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::int64_t c = from + static_cast<std::int64_t>(v) * kLanes;
    store(d, hn::Mul(sums[v], load(d, term.attention + c)), static_cast<S*>(to.own) + c);
    if (to.attention == nullptr) continue;
    T* share = static_cast<T*>(to.attention) + c;
    hn::StoreU(hn::Add(hn::LoadU(d, share), shares[v]), d, share);
  }
}

/// The same of one channel.
template <class S>
void gradient_channel(const Entries<S>& entries, LeakyTerm<S> term, std::int64_t c,
                      const LeakyGradient& to) {
  using T = compute_t<S>;
  T sum{}, share{};
  for (std::int64_t e = 0; e < entries.row.entries; ++e) {
    const std::int64_t number = entries.row.number_of(e);
    term.enter(number);
    const T z = term.sum_at_one(c, widen(entries.features(e)[c]));
    const T slanted = term.slanted_one(z, entries.weight(e));
    sum += slanted;
    share += slanted * term.finite_one(z);
    if (to.entry != nullptr)
      static_cast<S*>(to.entry)[number * term.pitch + c] =
          narrow<S>(slanted * widen(term.attention[c]));
  }
  static_cast<S*>(to.own)[c] = narrow<S>(sum * widen(term.attention[c]));
  if (to.attention != nullptr) static_cast<T*>(to.attention)[c] += share;
}

template <class S>
void leaky_gradient_row(const EntryRow& row, const LeakyRow& score, const LeakyGradient& to) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<compute_t<S>>()));
  const Entries<S> entries(row);
  const LeakyTerm<S> term(score, row.pitch);
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= row.channels; c += 4 * kLanes)
    gradient_channels<S, 4>(entries, term, c, to);
  for (; c + kLanes <= row.channels; c += kLanes)
    gradient_channels<S, 1>(entries, term, c, to);
  for (; c < row.channels; ++c)
    gradient_channel<S>(entries, term, c, to);
}

void make_leaky_kernels(LeakyKernels& table, DType storage) {
  dispatch_floating(storage, "scores of entries", [&](auto zero) {
    using S = decltype(zero);
    table = {.score = leaky_row<S>, .gradient = leaky_gradient_row<S>};
  });
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pumice::cpu {

HWY_EXPORT(make_leaky_kernels);

namespace {

LeakyKernels made(DType storage) {
  LeakyKernels table{};
  HWY_DYNAMIC_DISPATCH(make_leaky_kernels)(table, storage);
  return table;
}

}   // namespace

const LeakyKernels& leaky_kernels(DType storage) {
  static const StorageTables<LeakyKernels> tables(made);
  return tables.of(storage);
}

}   // namespace pumice::cpu
#endif
