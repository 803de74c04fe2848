// Memory that is NaN in every type until somebody writes it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>

namespace pumice::test {

/// Fills what another allocator gives with 0xff, in the order of the stream, before it hands it on.
class PoisonedMemory final : public Allocator {
 public:
  explicit PoisonedMemory(std::shared_ptr<Allocator> source) : source_(std::move(source)) {}

  void* allocate(std::size_t bytes, StreamView stream) override {
    void* const data = source_->allocate(bytes, stream);
    fill_bytes_async(data, std::byte{0xff}, bytes, stream);
    filled_ += bytes;
    return data;
  }
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    source_->deallocate(data, bytes, stream);
  }
  /// How many bytes it gave so far.
  std::size_t filled() const { return filled_; }

 private:
  std::shared_ptr<Allocator> source_;
  std::size_t filled_ = 0;
};

}   // namespace pumice::test
