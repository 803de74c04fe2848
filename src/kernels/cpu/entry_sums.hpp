// Sums of the entries of rows: channels in vectors, as many sums at once as there are registers
// for; entry after entry, so that the bits of a sum do not depend on how channels are cut. For
// files that are compiled once for each instruction set (targets.hpp), which include it after
// <hwy/highway.h>.
#if defined(PUMICE_ENTRY_SUMS_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef PUMICE_ENTRY_SUMS_HPP
#undef PUMICE_ENTRY_SUMS_HPP
#else
#define PUMICE_ENTRY_SUMS_HPP
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/storage_vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace pumice::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows [first, last), as EntryKernels::sum_rows has them. `kNumbered`: values lie by a list of
/// numbers, not by their places. `kAhead`: as in RangeSchedule; 0: the entries say. `kAdds`: to
/// what is there. Loops over rows of a few entries are as short as this: what is the same for all
/// rows is looked at before, and the usual number of entries ahead is compiled in, without which
/// 500 entries took 5 % longer.
template <class S, bool kNumbered, std::int64_t kAhead, bool kAdds = false> class RowSums {
 public:
  using T = compute_t<S>;
  static constexpr auto kLanes =
      static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<compute_t<S>>()));
  static constexpr int kMost = HWY_TARGET <= HWY_AVX3 ? 16 : 8;   // sums; half of the registers

  RowSums(const EntryRow& entries, const std::int64_t* begin, std::int64_t first, std::int64_t last,
          bool averages, S* output, const HeadAddends& added = {})
      : column_(entries.column),
        number_(entries.number),
        values_(static_cast<const S*>(entries.values)),
        value_pitch_(entries.values == nullptr ? 0 : entries.value_pitch),
        features_(static_cast<const S*>(entries.features)),
        pitch_(entries.pitch),
        listed_(entries.listed),
        ahead_(entries.ahead),
        begin_(begin),
        first_(first),
        last_(last),
        averages_(averages),
        output_(output),
        shift_(static_cast<const T*>(added.shift)),
        residual_(static_cast<const S*>(added.residual)) {
    if (values_ == nullptr) {
      values_ = &one_;
    } else if (!kNumbered) {
      values_ += entries.first * value_pitch_;
    }
  }

  void run(std::int64_t channels) const {
    std::int64_t from = 0;
    if constexpr (kMost == 16) vectors<16>(from, channels);
    vectors<8>(from, channels);
    vectors<4>(from, channels);
    vectors<2>(from, channels);
    vectors<1>(from, channels);
    if (from == channels) return;
    if (channels > kLanes && !kAdds) {   // some channels are summed twice, to the same bits
      sum<1>(channels - kLanes);
    } else {
      sum_last(channels - from, from);
    }
  }

 private:
  template <int kVectors> void vectors(std::int64_t& from, std::int64_t channels) const {
    for (; from + kVectors * kLanes <= channels; from += kVectors * kLanes)
      sum<kVectors>(from);
  }

  /// `kVectors` vectors of channels from `from` on.
  template <int kVectors> void sum(std::int64_t from) const {
    const hn::ScalableTag<T> d;
    const RowSums of = *this;   // which no store of sums can change: it stays in registers
    const S* const features = of.features_ + from;
    S* to = of.output_ + of.first_ * of.pitch_ + from;
    std::int64_t place = of.begin_[of.first_];
    for (std::int64_t row = of.first_; row < of.last_; ++row, to += of.pitch_) {
      const std::int64_t end = of.begin_[row + 1];
      const std::int64_t entries = end - place;
      Vector<T> sums[static_cast<std::size_t>(kVectors)];
      for (int v = 0; v < kVectors; ++v)
        sums[v] = hn::Zero(d);
      for (; place < end; ++place) {
        const S* const x = features + of.column_[place] * of.pitch_;
        of.template prefetch<kVectors * kLanes>(features, place);
        const auto weight = hn::Set(d, of.weight_of(place));
        for (int v = 0; v < kVectors; ++v)
          sums[v] = hn::MulAdd(weight, load(d, x + v * kLanes), sums[v]);
      }
      if (of.averages_ && entries > 1) {
        const auto scale = hn::Set(d, T{1} / static_cast<T>(entries));
        for (int v = 0; v < kVectors; ++v)
          sums[v] = hn::Mul(sums[v], scale);
      }
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kAdds) sums[v] = of.added(sums[v], from + v * kLanes, to + v * kLanes);
        store(d, sums[v], to + v * kLanes);
      }
    }
  }

  /// A sum and what is there, of channels from `from` on, whose sums go `to`.
  Vector<T> added(Vector<T> sum, std::int64_t from, const S* to) const {
    const hn::ScalableTag<T> d;
    if (residual_ != nullptr) sum = hn::Add(sum, load(d, residual_ + (to - output_)));
    return shift_ == nullptr ? sum : hn::Add(sum, hn::LoadU(d, shift_ + from));
  }

  /// Channels that are less than a vector.
  void sum_last(std::int64_t channels, std::int64_t from) const {
    std::int64_t place = begin_[first_];
    for (std::int64_t row = first_; row < last_; ++row) {
      const std::int64_t end = begin_[row + 1];
      const std::int64_t entries = end - place;
      T sums[static_cast<std::size_t>(kLanes)] = {};
      for (; place < end; ++place) {
        const S* const x = features_ + column_[place] * pitch_ + from;
        prefetch<1>(features_ + from, place);
        const T weight = weight_of(place);
        for (std::int64_t c = 0; c < channels; ++c)
          sums[c] = std::fma(weight, widen(x[c]), sums[c]);
      }
      const T scale = averages_ && entries > 1 ? T{1} / static_cast<T>(entries) : T{1};
      S* const to = output_ + row * pitch_ + from;
      for (std::int64_t c = 0; c < channels; ++c) {
        T sum = sums[c] * scale;
        if constexpr (kAdds) {
          if (residual_ != nullptr) sum += widen(residual_[to - output_ + c]);
          if (shift_ != nullptr) sum += shift_[from + c];
        }
        to[c] = narrow<S>(sum);
      }
    }
  }

  T weight_of(std::int64_t place) const {
    return widen(values_[(kNumbered ? number_[place] : place) * value_pitch_]);
  }

  template <std::int64_t kChannels> void prefetch(const S* features, std::int64_t place) const {
    const std::int64_t next = std::min(place + (kAhead > 0 ? kAhead : ahead_), listed_ - 1);
    const S* const row = features + column_[next] * pitch_;
    constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(S));
    for (std::int64_t c = 0; c < kChannels; c += kLine)
      hwy::Prefetch(row + c);
  }

  const std::int32_t* column_;
  const std::int64_t* number_;
  const S* values_;
  std::int64_t value_pitch_;   // 0 for one value for all
  const S* features_;
  std::int64_t pitch_;
  std::int64_t listed_;
  std::int64_t ahead_;   // where kAhead is 0
  const std::int64_t* begin_;
  std::int64_t first_, last_;
  bool averages_;
  S* output_;
  const T* shift_;      // null: none
  const S* residual_;   // null: none
  S one_ = narrow<S>(T{1});
};

template <class S, std::int64_t kAhead, bool kAdds>
void sum_rows_ahead(const EntryRow& entries, const std::int64_t* begin, std::int64_t first,
                    std::int64_t last, bool averages, S* output, const HeadAddends& added) {
  if (entries.number == nullptr || entries.values == nullptr) {
    RowSums<S, false, kAhead, kAdds>(entries, begin, first, last, averages, output, added)
        .run(entries.channels);
  } else {
    RowSums<S, true, kAhead, kAdds>(entries, begin, first, last, averages, output, added)
        .run(entries.channels);
  }
}

template <class S>
void sum_rows(const EntryRow& entries, const std::int64_t* begin, std::int64_t first,
              std::int64_t last, bool averages, void* output, const HeadAddends& added) {
  constexpr std::int64_t kUsual = RangeSchedule{}.ahead;
  auto* const to = static_cast<S*>(output);
  if (added.any()) {
    sum_rows_ahead<S, 0, true>(entries, begin, first, last, averages, to, added);
  } else if (entries.ahead == kUsual) {
    sum_rows_ahead<S, kUsual, false>(entries, begin, first, last, averages, to, added);
  } else {
    sum_rows_ahead<S, 0, false>(entries, begin, first, last, averages, to, added);
  }
}

}   // namespace pumice::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
