// The entries of a row one after the other, and a number for each of them. For files that are
// compiled once for each instruction set (targets.hpp), which include it after <hwy/highway.h>.
#if defined(PUMICE_ENTRY_WALK_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PUMICE_ENTRY_WALK_HPP
#undef PUMICE_ENTRY_WALK_HPP
#else
#define PUMICE_ENTRY_WALK_HPP
#endif

#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
  /// Rows of features are read at random: they are asked for some entries ahead, across the ends of
  /// rows, most of which have fewer.
  void prefetch(std::int64_t place, std::int64_t from, std::int64_t channels) const {
    prefetch_of(static_cast<const S*>(row.features), place, from, channels);
  }
  /// Of other rows, which lie as those of features do.
  template <class Element>
  void prefetch_of(const Element* rows, std::int64_t place, std::int64_t from,
                   std::int64_t channels) const {
    if (place + row.ahead >= row.listed) return;
    const Element* const next = rows + row.column[place + row.ahead] * row.pitch + from;
    constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(Element));
    for (std::int64_t c = 0; c < channels; c += kLine)
      hwy::Prefetch(next + c);
  }

  const EntryRow& row;
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

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
