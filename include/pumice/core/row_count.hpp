// How many rows are in use, beside how many there is room for. On a GPU the number in use lives on
// the device and only the capacity is known here, so nothing has to wait; on the CPU both are
// known.
#pragma once

#include <cstdint>
#include <memory>

#include <pumice/core/buffer.hpp>

namespace pumice {

/// What a kernel receives: trivially copyable, passed by value. Work is launched over `capacity`
/// and reads `*count` where it runs.
struct RowCountRef {
  const std::int64_t* count = nullptr;
  std::int64_t capacity = 0;
};

class RowCount {
 public:
  RowCount() = default;
  /// The host knows: count == capacity == rows.
  static RowCount exact(std::int64_t rows);
  /// `count` is a word in device memory that never exceeds `capacity` (kernels clamp it, and raise
  /// the device's status word when they had to).
  static RowCount on_device(Buffer<std::int64_t> count, std::int64_t capacity);

  std::int64_t capacity() const { return capacity_; }
  bool host_knows() const { return host_knows_; }
  /// The number of rows in use; InternalError where only the device knows it.
  std::int64_t host() const;
  RowCountRef ref() const;

 private:
  std::shared_ptr<Buffer<std::int64_t>> count_;
  std::int64_t capacity_ = 0;
  bool host_knows_ = true;
};

}   // namespace pumice
