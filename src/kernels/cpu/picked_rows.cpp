// Numbers of 64 bits beside channels of 32: the halves of as many as there are lanes are compared.
#include "kernels/cpu/picked_rows.hpp"

#include <cmath>

#include "kernels/cpu/storage_tables.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/picked_rows.cpp"
#include "kernels/cpu/targets.hpp"

#include <hwy/highway.h>

#include "kernels/cpu/entry_walk.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Which of the next numbers are the one of an entry, a lane for each.
template <class T, class Number> class Picks;
template <> class Picks<float, std::int64_t> {
 public:
  explicit Picks(std::int64_t number)
      : low_(hn::Set(kHalves, static_cast<std::int32_t>(number))),
        high_(hn::Set(kHalves, static_cast<std::int32_t>(number >> 32))) {}

  auto of(const std::int64_t* picked) const {
    const auto* const halves = reinterpret_cast<const std::int32_t*>(picked);
    const auto first = hn::LoadU(kHalves, halves);
    const auto second = hn::LoadU(kHalves, halves + hn::Lanes(kHalves));
    const auto low = hn::ConcatEven(kHalves, second, first);
    const auto high = hn::ConcatOdd(kHalves, second, first);
    return hn::RebindMask(hn::ScalableTag<float>(),
                          hn::And(hn::Eq(low, low_), hn::Eq(high, high_)));
  }

 private:
  static constexpr hn::ScalableTag<std::int32_t> kHalves{};
  Vector<std::int32_t> low_, high_;
};
template <> class Picks<float, std::int32_t> {
 public:
  explicit Picks(std::int64_t number)
      : number_(hn::Set(kNumbers, static_cast<std::int32_t>(number))) {}

  auto of(const std::int32_t* picked) const {
    return hn::RebindMask(hn::ScalableTag<float>(), hn::Eq(hn::LoadU(kNumbers, picked), number_));
  }

 private:
  static constexpr hn::ScalableTag<std::int32_t> kNumbers{};
  Vector<std::int32_t> number_;
};
template <class Number> class Picks<double, Number> {
 public:
  explicit Picks(std::int64_t number) : number_(hn::Set(kNumbers, number)) {}

  auto of(const std::int64_t* picked) const { return equal(hn::LoadU(kNumbers, picked)); }
  auto of(const std::int32_t* picked) const {
    const hn::Rebind<std::int32_t, hn::ScalableTag<std::int64_t>> narrow;
    return equal(hn::PromoteTo(kNumbers, hn::LoadU(narrow, picked)));
  }

 private:
  auto equal(Vector<std::int64_t> numbers) const {
    return hn::RebindMask(hn::ScalableTag<double>(), hn::Eq(numbers, number_));
  }

  static constexpr hn::ScalableTag<std::int64_t> kNumbers{};
  Vector<std::int64_t> number_;
};

/// The sums of `kVectors` vectors of channels from `from` on.
template <class S, int kVectors, class Number>
void sum_channels(const Entries<S>& entries, const Number* picked, std::int64_t from, S* output) {
  using T = compute_t<S>;
  const hn::ScalableTag<T> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  Vector<T> sums[static_cast<std::size_t>(kVectors)];
  for (int v = 0; v < kVectors; ++v)
    sums[v] = hn::Zero(d);
  for (std::int64_t e = 0; e < entries.row.entries; ++e) {
    const auto weight = hn::Set(d, entries.weight(e));
    const S* const x = entries.features(e) + from;
    const Number* const names = picked + entries.row.column[e] * entries.row.pitch + from;
    const Picks<T, Number> picks(entries.row.number_of(e));
    entries.prefetch(e, from, kVectors * kLanes);
    entries.prefetch_of(picked, e, from, kVectors * kLanes);
    for (int v = 0; v < kVectors; ++v) {
      const auto more = hn::MulAdd(weight, load(d, x + v * kLanes), sums[v]);
      sums[v] = hn::IfThenElse(picks.of(names + v * kLanes), more, sums[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v)
    store(d, sums[v], output + from + v * kLanes);
}

template <class S, class Number>
void sum_row(const EntryRow& row, const Number* picked, void* output) {
  using T = compute_t<S>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  const Entries<S> entries(row);
  auto* out = static_cast<S*>(output);
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= row.channels; c += 4 * kLanes)
    sum_channels<S, 4>(entries, picked, c, out);
  for (; c + 2 * kLanes <= row.channels; c += 2 * kLanes)
    sum_channels<S, 2>(entries, picked, c, out);
  for (; c + kLanes <= row.channels; c += kLanes)
    sum_channels<S, 1>(entries, picked, c, out);
  if (c < row.channels && row.channels > kLanes) {   // some are summed twice, to the same bits
    sum_channels<S, 1>(entries, picked, row.channels - kLanes, out);
    return;
  }
  for (; c < row.channels; ++c) {
    T sum{};
    for (std::int64_t e = 0; e < row.entries; ++e) {
      if (picked[row.column[e] * row.pitch + c] == row.number_of(e))
        sum = std::fma(entries.weight(e), widen(entries.features(e)[c]), sum);
    }
    out[c] = narrow<S>(sum);
  }
}

/// left · right, where a channel names the entry.
template <class S> struct PickedTerm {
  using T = compute_t<S>;
  void enter(std::int64_t of_entry) { number = of_entry; }
  Vector<T> add(std::int64_t c, Vector<T> right, Vector<T> sum) const {
    const auto more = hn::MulAdd(load(hn::ScalableTag<T>(), left + c), right, sum);
    return hn::IfThenElse(Picks<T, std::int64_t>(number).of(picked + c), more, sum);
  }
  T add_one(std::int64_t c, T right, T sum) const {
    return picked[c] == number ? std::fma(widen(left[c]), right, sum) : sum;
  }

  const S* left;
  const std::int64_t* picked;
  std::int64_t number = 0;
};

template <class S>
void dot_row(const EntryRow& row, const void* left, const std::int64_t* picked, void* output,
             std::int64_t output_pitch) {
  map_row<S>(row, PickedTerm<S>{static_cast<const S*>(left), picked}, output, output_pitch);
}

void make_picked_kernels(PickedKernels& table, DType storage) {
  dispatch_floating(storage, "entries that were picked", [&](auto zero) {
    using S = decltype(zero);
    table = {
        .sum = sum_row<S, std::int64_t>, .sum_narrow = sum_row<S, std::int32_t>, .dot = dot_row<S>};
  });
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pumice::cpu {

HWY_EXPORT(make_picked_kernels);

namespace {

PickedKernels made(DType storage) {
  PickedKernels table{};
  HWY_DYNAMIC_DISPATCH(make_picked_kernels)(table, storage);
  return table;
}

}   // namespace

const PickedKernels& picked_kernels(DType storage) {
  static const StorageTables<PickedKernels> tables(made);
  return tables.of(storage);
}

}   // namespace pumice::cpu
#endif
