// Memory that is taken as one slab and given back as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <pumice/core/allocator.hpp>
#include <pumice/core/buffer.hpp>

namespace pumice {

/// Carves what it is asked for from a slab and takes nothing back, so that addresses stay as they
/// are for as long as it lives: what a captured plan owns. For one thread at a time.
class ArenaAllocator final : public Allocator {
 public:
  /// Takes `bytes` on `stream` from `source`, by default the device's own allocator.
  ArenaAllocator(std::int64_t bytes, StreamView stream, std::shared_ptr<Allocator> source = {});

  /// UserError with the numbers when the slab has too little left, or for another device.
  void* allocate(std::size_t bytes, StreamView stream) override;
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override;

  /// Everything handed out so far is free again; nobody may be using it.
  void rewind() { used_ = 0; }
  std::int64_t capacity() const { return slab_.size(); }
  std::int64_t used() const { return used_; }

 private:
  Buffer<std::byte> slab_;
  std::int64_t used_ = 0;
};

}   // namespace pumice
