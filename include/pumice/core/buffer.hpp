// The owner of a piece of stream-ordered memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <pumice/core/allocator.hpp>
#include <pumice/core/error.hpp>

namespace pumice {

/// Owns `size()` elements of trivially copyable `T`, uninitialised. Knows its device, stream and
/// allocator (by default the device's, see default_allocator); moves, never copies. Elements on a
/// device are not for the host to read: <pumice/core/copy.hpp> brings them over.
template <class T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "elements are never constructed");

 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size, StreamView stream = {},
                  std::shared_ptr<Allocator> allocator = nullptr)
      : size_(size),
        stream_(stream),
        allocator_(allocator ? std::move(allocator) : default_allocator(stream.device)) {
    PUMICE_ENSURES(size >= 0 && size <= std::numeric_limits<std::int64_t>::max() /
                                            static_cast<std::int64_t>(sizeof(T)),
                   "buffer of ", size, " elements of ", sizeof(T), " bytes");
    if (size > 0) data_ = static_cast<T*>(allocator_->allocate(bytes(), stream_));
  }
  /// Takes over memory of `size` elements that `allocator` gave: it gets them back.
  Buffer(T* data, std::int64_t size, StreamView stream, std::shared_ptr<Allocator> allocator)
      : data_(data), size_(size), stream_(stream), allocator_(std::move(allocator)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) allocator_->deallocate(data_, bytes(), stream_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }
  StreamView stream() const { return stream_; }
  /// Whose memory it is.
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  Device device() const { return stream_.device; }

  /// For the host; UserError where the elements are on a device.
  std::span<T> span() {
    expect_on_host();
    return {data_, static_cast<std::size_t>(size_)};
  }
  std::span<const T> span() const {
    expect_on_host();
    return {data_, static_cast<std::size_t>(size_)};
  }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  void expect_on_host() const {
    PUMICE_EXPECTS(device().kind == DeviceKind::cpu, "this buffer is on ", to_string(device()),
                   ": copy_to_host brings it to the host");
  }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(stream_, other.stream_);
    std::swap(allocator_, other.allocator_);
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
  StreamView stream_{};
  std::shared_ptr<Allocator> allocator_;
};

}   // namespace pumice
