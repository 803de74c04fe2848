// Channels in vectors, as many sums at once as there are registers for; entry after entry, so that
// the bits of a sum do not depend on how channels are cut.
#include "kernels/cpu/entry_rows.hpp"

#include <algorithm>

#include "kernels/cpu/storage_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/entry_rows.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of features are read at random: they are asked for so many entries ahead.
constexpr std::int64_t kAhead = 8;

template <class S> struct Entries {
  using T = compute_t<S>;

  explicit Entries(const EntryRow& of) : row(of) {}

  T weight(std::int64_t place) const {
    if (row.values == nullptr) return T{1};
    return widen(static_cast<const S*>(row.values)[row.number_of(place) * row.value_pitch]);
  }
  const S* features(std::int64_t place) const {
    return static_cast<const S*>(row.features) + row.column[place] * row.pitch;
  }
  void prefetch(std::int64_t place, std::int64_t from, std::int64_t channels) const {
    if (place + kAhead >= row.entries) return;
    const S* next = features(place + kAhead) + from;
    constexpr auto line = static_cast<std::int64_t>(64 / sizeof(S));
    for (std::int64_t c = 0; c < channels; c += line)
      hwy::Prefetch(next + c);
  }

  const EntryRow& row;
};

/// The sums of `kVectors` vectors of channels from `from` on.
template <class S, std::size_t kVectors>
void sum_channels(const Entries<S>& entries, std::int64_t from, compute_t<S> scale, S* output) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  Vector<T> sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v)
    sums[v] = hn::Zero(d);
  for (std::int64_t e = 0; e < entries.row.entries; ++e) {
    const auto weight = hn::Set(d, entries.weight(e));
    const S* x = entries.features(e) + from;
    entries.prefetch(e, from, kVectors * kLanes);
    for (std::size_t v = 0; v < kVectors; ++v)
      sums[v] = hn::MulAdd(weight, load(d, x + v * kLanes), sums[v]);
  }
  const auto scales = hn::Set(d, scale);
  for (std::size_t v = 0; v < kVectors; ++v)
    store(d, hn::Mul(sums[v], scales), output + from + v * kLanes);
}

template <class S> void sum_row(const EntryRow& row, double scale, void* output) {
  using T = compute_t<S>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const Entries<S> entries(row);
  const auto factor = static_cast<T>(scale);
  auto* out = static_cast<S*>(output);
  std::int64_t c = 0;
  for (; c + 8 * kLanes <= row.channels; c += 8 * kLanes)
    sum_channels<S, 8>(entries, c, factor, out);
  for (; c + 4 * kLanes <= row.channels; c += 4 * kLanes)
    sum_channels<S, 4>(entries, c, factor, out);
  for (; c + 2 * kLanes <= row.channels; c += 2 * kLanes)
    sum_channels<S, 2>(entries, c, factor, out);
  for (; c + kLanes <= row.channels; c += kLanes)
    sum_channels<S, 1>(entries, c, factor, out);
  for (; c < row.channels; ++c) {
    T sum{};
    for (std::int64_t e = 0; e < row.entries; ++e)
      sum += entries.weight(e) * widen(entries.features(e)[c]);
    out[c] = narrow<S>(sum * factor);
  }
}

/// Whether a candidate goes before what was found so far.
template <class T> bool goes_before(T candidate, T found) {
  return candidate > found || (candidate != candidate && found == found);
}

template <class S>
void most_row(const EntryRow& row, double sign, void* output, std::int64_t* source) {
  using T = compute_t<S>;
  const Entries<S> entries(row);
  const auto direction = static_cast<T>(sign);
  auto* out = static_cast<S*>(output);
  constexpr std::int64_t kBlock = 64;   // channels whose best stay in the first-level cache
  T best[kBlock];
  for (std::int64_t from = 0; from < row.channels; from += kBlock) {
    const std::int64_t channels = std::min(kBlock, row.channels - from);
    for (std::int64_t e = 0; e < row.entries; ++e) {
      const T weight = entries.weight(e) * direction;
      const S* x = entries.features(e) + from;
      entries.prefetch(e, from, channels);
      for (std::int64_t c = 0; c < channels; ++c) {
        const T candidate = weight * widen(x[c]);
        if (e > 0 && !goes_before(candidate, best[c])) continue;
        best[c] = candidate;
        source[from + c] = e;
      }
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      out[from + c] = narrow<S>(best[c] * direction);
      source[from + c] = row.number_of(source[from + c]);
    }
  }
}

/// left · right.
template <class S> struct DotTerm {
  using T = compute_t<S>;
  void enter(std::int64_t /*number*/) {}
  Vector<T> add(std::int64_t c, Vector<T> right, Vector<T> sum) const {
    return hn::MulAdd(load(hn::ScalableTag<T>(), left + c), right, sum);
  }
  T add_one(std::int64_t c, T right, T sum) const { return sum + widen(left[c]) * right; }

  const S* left;
};

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

  Vector<T> add(std::int64_t c, Vector<T> right, Vector<T> sum) const {
    const auto z = sum_at(c, right);
    return hn::MulAdd(load(hn::ScalableTag<T>(), attention + c), slanted(z, z), sum);
  }
  T add_one(std::int64_t c, T right, T sum) const {
    const T z = sum_at_one(c, right);
    return sum + widen(attention[c]) * slanted_one(z, z);
  }

  const S* own;
  const S* attention;
  const S* entries;
  std::int64_t pitch;
  T slope;
  const S* entry = nullptr;
};

/// A number for each entry: what `term` makes of its row of features, added up over channels.
template <class S, class Term>
void map_row(const EntryRow& row, Term term, void* output, std::int64_t output_pitch) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const Entries<S> entries(row);
  auto* out = static_cast<S*>(output);
  for (std::int64_t e = 0; e < row.entries; ++e) {
    const std::int64_t number = row.number_of(e);
    const S* r = entries.features(e);
    entries.prefetch(e, 0, row.channels);
    term.enter(number);
    Vector<T> sums[2] = {hn::Zero(d), hn::Zero(d)};
    std::int64_t c = 0;
    for (; c + 2 * kLanes <= row.channels; c += 2 * kLanes) {
      sums[0] = term.add(c, load(d, r + c), sums[0]);
      sums[1] = term.add(c + kLanes, load(d, r + c + kLanes), sums[1]);
    }
    for (; c + kLanes <= row.channels; c += kLanes)
      sums[0] = term.add(c, load(d, r + c), sums[0]);
    T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1])));
    for (; c < row.channels; ++c)
      sum = term.add_one(c, widen(r[c]), sum);
    out[number * output_pitch] = narrow<S>(sum);
  }
}

template <class S>
void dot_row(const EntryRow& row, const void* left, void* output, std::int64_t output_pitch) {
  map_row<S>(row, DotTerm<S>{static_cast<const S*>(left)}, output, output_pitch);
}

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
      shares[v] = hn::MulAdd(slanted, z, shares[v]);
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
    share += slanted * z;
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

void make_entry_kernels(EntryKernels& table, DType storage) {
  dispatch_floating(storage, "entries of a sparse matrix", [&](auto zero) {
    using S = decltype(zero);
    table = {.sum = sum_row<S>,
             .most = most_row<S>,
             .dot = dot_row<S>,
             .leaky = leaky_row<S>,
             .leaky_gradient = leaky_gradient_row<S>};
  });
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pumice::cpu {

HWY_EXPORT(make_entry_kernels);

namespace {

EntryKernels made(DType storage) {
  EntryKernels table{};
  HWY_DYNAMIC_DISPATCH(make_entry_kernels)(table, storage);
  return table;
}

}   // namespace

const EntryKernels& entry_kernels(DType storage) {
  static const StorageTables<EntryKernels> tables(made);
  return tables.of(storage);
}

}   // namespace pumice::cpu
#endif
