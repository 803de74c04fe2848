// The entries of one row, and loops over them: a table for each storage type, picked once for the
// processor at hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pumice/core/dtype.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice::cpu {

/// Null where there is no tensor.
inline const void* element_at(ConstTensorView tensor, std::int64_t element) {
  if (!tensor.defined()) return nullptr;
  return static_cast<const std::byte*>(tensor.raw()) +
         element * static_cast<std::int64_t>(size_of(tensor.dtype()));
}
inline void* element_at(TensorView tensor, std::int64_t element) {
  if (!tensor.defined()) return nullptr;
  return static_cast<std::byte*>(tensor.raw()) +
         element * static_cast<std::int64_t>(size_of(tensor.dtype()));
}

/// Entries of a row, and the channels of one head.
struct EntryRow {
  const std::int32_t* column;   // of the row's entries
  const std::int64_t* number;   // of the row's entries; null: `first` and on
  std::int64_t first;
  std::int64_t entries;
  std::int64_t listed;        // columns from `column` on, those of the rows behind it too
  std::int64_t ahead;         // entries whose features are asked for before they are needed
  const void* values;         // of the head; null: ones
  std::int64_t value_pitch;   // from one number to the next
  const void* features;       // of the head, row 0
  std::int64_t pitch;         // from one row of features to the next
  std::int64_t channels;

  std::int64_t number_of(std::int64_t place) const {
    return number == nullptr ? first + place : number[place];
  }
};

/// The rows of a pattern seen by one head at a time, whose channels lie side by side.
class HeadRows {
 public:
  /// `features` [columns, heads · channels]; `values` [entries, heads], undefined for ones.
  /// `ahead`: as in RangeSchedule.
  HeadRows(const CsrView& pattern, ConstTensorView features, ConstTensorView values,
           std::int64_t heads, std::int64_t ahead = RangeSchedule{}.ahead);

  std::int64_t heads() const { return heads_; }
  /// Of a head.
  std::int64_t channels() const { return channels_; }
  EntryRow of(std::int64_t row, std::int64_t head) const {
    return between(pattern_.begin_of(row), pattern_.end_of(row), head);
  }
  /// The entries of all rows, one after the other.
  EntryRow all(std::int64_t head) const { return between(0, pattern_.entries(), head); }

 private:
  /// In the header, since loops over rows of a few entries call it for each.
  EntryRow between(std::int64_t begin, std::int64_t end, std::int64_t head) const {
    return {.column = pattern_.column.data() + begin,
            .number = pattern_.entry.empty() ? nullptr : pattern_.entry.data() + begin,
            .first = begin,
            .entries = end - begin,
            .listed = pattern_.entries() - begin,
            .ahead = ahead_,
            .values = values_ == nullptr ? nullptr : values_ + head * bytes_,
            .value_pitch = heads_,
            .features = features_ + head * channels_ * bytes_,
            .pitch = heads_ * channels_,
            .channels = channels_};
  }

  CsrView pattern_;
  const std::byte* features_;
  const std::byte* values_;   // null: ones
  std::int64_t bytes_;        // of an element
  std::int64_t heads_;
  std::int64_t channels_;
  std::int64_t ahead_;
};

/// What sums are added to, of one head; null: nothing.
struct HeadAddends {
  const void* shift = nullptr;      // compute type [channels]
  const void* residual = nullptr;   // rows as those of the output, which it may be

  bool any() const { return shift != nullptr || residual != nullptr; }
};

struct EntryKernels {
  /// The same for rows [first, last), whose places among `entries` begin at begin[row]: output[row
  /// · pitch + c] = Σ of a row's entries, or their mean, in the order of the entries, and what is
  /// `added` to it.
  void (*sum_rows)(const EntryRow& entries, const std::int64_t* begin, std::int64_t first,
                   std::int64_t last, bool averages, void* output, const HeadAddends& added);
  /// output[c], and the number of its entry in source[c]; `sign` 1 for the largest, -1 for the
  /// smallest. The row has an entry.
  void (*most)(const EntryRow& row, double sign, void* output, std::int64_t* source);
  /// output[number · output_pitch] = left · feature row of each entry.
  void (*dot)(const EntryRow& row, const void* left, void* output, std::int64_t output_pitch);
};

const EntryKernels& entry_kernels(DType storage);

}   // namespace pumice::cpu
