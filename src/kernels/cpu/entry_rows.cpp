// Channels in vectors, entry after entry.
#include "kernels/cpu/entry_rows.hpp"

#include <limits>

#include "kernels/cpu/storage_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/entry_rows.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#include "kernels/cpu/entry_sums.hpp"
#include "kernels/cpu/entry_walk.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What a row's largest or smallest are, and where they stand.
template <class S> class Most {
 public:
  using T = compute_t<S>;
  static constexpr auto kLanes =
      static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<compute_t<S>>()));

  Most(const EntryRow& row, double sign, S* output, std::int64_t* source)
      : entries_(row), direction_(static_cast<T>(sign)), output_(output), source_(source) {}

  void run() const {
    const std::int64_t channels = entries_.row.channels;
    std::int64_t from = 0;
    if (entries_.row.entries <= std::int64_t{std::numeric_limits<Place>::max()}) {
      for (; from + 4 * kLanes <= channels; from += 4 * kLanes)
        vectors<4>(from);
      for (; from + 2 * kLanes <= channels; from += 2 * kLanes)
        vectors<2>(from);
      for (; from + kLanes <= channels; from += kLanes)
        vectors<1>(from);
      if (from < channels && channels > kLanes) {   // some twice, to the same result
        vectors<1>(channels - kLanes);
        return;
      }
    }
    for (; from < channels; ++from)
      one(from);
  }

 private:
  using Place = hwy::MakeSigned<T>;   // in a row, of as many lanes as channels

  /// Of `kVectors` vectors of channels from `from` on.
  template <int kVectors> void vectors(std::int64_t from) const {
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<Place> places;
    Vector<T> best[static_cast<std::size_t>(kVectors)];
    Vector<Place> place[static_cast<std::size_t>(kVectors)];
    const auto first = hn::Set(d, entries_.weight(0) * direction_);
    for (int v = 0; v < kVectors; ++v) {
      best[v] = hn::Mul(first, load(d, entries_.features(0) + from + v * kLanes));
      place[v] = hn::Zero(places);
    }
    for (std::int64_t e = 1; e < entries_.row.entries; ++e) {
      const auto weight = hn::Set(d, entries_.weight(e) * direction_);
      const auto here = hn::Set(places, static_cast<Place>(e));
      const S* const x = entries_.features(e) + from;
      entries_.prefetch(e, from, kVectors * kLanes);
      for (int v = 0; v < kVectors; ++v) {
        const auto candidate = hn::Mul(weight, load(d, x + v * kLanes));
        // Larger, or no number where one stood.
        const auto better = hn::AndNot(hn::Le(candidate, best[v]), hn::Eq(best[v], best[v]));
        best[v] = hn::IfThenElse(better, candidate, best[v]);
        place[v] = hn::IfThenElse(hn::RebindMask(places, better), here, place[v]);
      }
    }
    const auto direction = hn::Set(d, direction_);
    for (int v = 0; v < kVectors; ++v) {
      store(d, hn::Mul(best[v], direction), output_ + from + v * kLanes);
      name(place[v], source_ + from + v * kLanes);
    }
  }

  /// Writes the numbers of the entries at these places of the row.
  void name(Vector<std::int64_t> place, std::int64_t* to) const {
    const hn::ScalableTag<std::int64_t> d;
    const std::int64_t* const number = entries_.row.number;
    hn::StoreU(number == nullptr ? hn::Add(place, hn::Set(d, entries_.row.first))
                                 : hn::GatherIndex(d, number, place),
               d, to);
  }
  void name(Vector<std::int32_t> place, std::int64_t* to) const {
    const hn::ScalableTag<std::int64_t> d;
    const hn::Half<hn::ScalableTag<std::int32_t>> half;
    name(hn::PromoteTo(d, hn::LowerHalf(half, place)), to);
    name(hn::PromoteTo(d, hn::UpperHalf(half, place)), to + hn::Lanes(d));
  }

  void one(std::int64_t channel) const {
    T best{};
    std::int64_t place = 0;
    for (std::int64_t e = 0; e < entries_.row.entries; ++e) {
      const T candidate = entries_.weight(e) * direction_ * widen(entries_.features(e)[channel]);
      if (e > 0 && (candidate <= best || best != best)) continue;
      best = candidate;
      place = e;
    }
    output_[channel] = narrow<S>(best * direction_);
    source_[channel] = entries_.row.number_of(place);
  }

  Entries<S> entries_;
  T direction_;
  S* output_;
  std::int64_t* source_;
};

template <class S>
void most_row(const EntryRow& row, double sign, void* output, std::int64_t* source) {
  Most<S>(row, sign, static_cast<S*>(output), source).run();
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
    table = {.sum_rows = sum_rows<S>, .most = most_row<S>, .dot = dot_row<S>};
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
