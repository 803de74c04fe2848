// Channels in vectors, as many sums at once as there are registers for; entry after entry, so that
// the bits of a sum do not depend on how channels are cut.
#include "kernels/cpu/entry_rows.hpp"

#include <algorithm>

#include "kernels/cpu/storage_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/entry_rows.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#include "kernels/cpu/entry_walk.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

template <class S>
void sum_rows(const HeadRows& rows, std::int64_t first, std::int64_t last, bool averages,
              void* output) {
  const std::int64_t heads = rows.heads();
  auto* to = static_cast<S*>(output) + first * heads * rows.channels();
  for (std::int64_t row = first; row < last; ++row) {
    for (std::int64_t head = 0; head < heads; ++head, to += rows.channels()) {
      const EntryRow entries = rows.of(row, head);
      const bool divides = averages && entries.entries > 1;
      sum_row<S>(entries, divides ? 1.0 / static_cast<double>(entries.entries) : 1.0, to);
    }
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

template <class S>
void dot_row(const EntryRow& row, const void* left, void* output, std::int64_t output_pitch) {
  map_row<S>(row, DotTerm<S>{static_cast<const S*>(left)}, output, output_pitch);
}

void make_entry_kernels(EntryKernels& table, DType storage) {
  dispatch_floating(storage, "entries of a sparse matrix", [&](auto zero) {
    using S = decltype(zero);
    table = {.sum_rows = sum_rows<S>, .sum = sum_row<S>, .most = most_row<S>, .dot = dot_row<S>};
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
