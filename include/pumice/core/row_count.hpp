// How many rows are in use, beside how many there is room for. On a GPU the number in use lives on
// the device and only the capacity is known here, so nothing has to wait; on the CPU both are
// known.
#pragma once

#include <cstdint>
#include <memory>

#include <pumice/shared/row_count.h>
#include <pumice/core/device.hpp>

namespace pumice {

class RowCount {
 public:
  RowCount() = default;
  /// The host knows: count == capacity == rows.
  static RowCount exact(std::int64_t rows);
  /// `count` is a word where the data is, kept alive by whoever owns the buffer it lies in, so that
  /// the counts of a network can sit side by side.
  static RowCount on_device(std::shared_ptr<std::int64_t> count, std::int64_t capacity,
                            Device device);

  std::int64_t capacity() const { return capacity_; }
  bool host_knows() const { return host_knows_; }
  /// The number of rows in use. InternalError where only the device knows it; UserError, with both
  /// numbers, where the capacity was exceeded.
  std::int64_t host() const;
  /// The same for a count that only the device knows: copies the word on `stream` and waits for it,
  /// raising what went wrong there.
  std::int64_t wait_for_host(StreamView stream) const;
  RowCountRef ref() const { return {count_.get(), capacity_}; }
  /// The word, for the one who counts; null when the count is exact.
  std::int64_t* word() const { return count_.get(); }

 private:
  std::shared_ptr<std::int64_t> count_;
  std::int64_t capacity_ = 0;
  bool host_knows_ = true;
};

}   // namespace pumice
