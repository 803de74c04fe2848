// Blocks of device memory that were given back, kept for who asks next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace pumice {

/// A call into PyTorch's allocator costs the host 2 to 3 us, and a network asks hundreds of times a
/// pass, mostly for the same small sizes. Taken again on the stream that it was given back on, as
/// PyTorch itself hands out memory, a block needs no event and no wait.
class BlockCache {
 public:
  /// What is larger belongs to the framework the moment it is free, or to a cache of its own.
  static constexpr std::size_t kLargest = std::size_t{2} << 20;
  /// Bytes that are kept at most, unless a cache says otherwise.
  static constexpr std::size_t kMost = std::size_t{64} << 20;

  explicit BlockCache(std::size_t most = kMost) : most_(most) {}

  static bool takes(std::size_t bytes) { return bytes <= kLargest; }
  /// The bytes that a block for `bytes` has: at most a quarter more, or 512.
  static std::size_t rounded(std::size_t bytes);

  /// A block for `bytes`; null where none is kept.
  void* take(std::size_t bytes, const void* stream);
  /// Keeps a block that has rounded(bytes). Returns those that have to go instead: of the sizes
  /// that nobody has asked for the longest.
  std::vector<void*> keep(void* block, std::size_t bytes, const void* stream);
  /// All blocks, which no longer are kept.
  std::vector<void*> release();

  std::size_t bytes() const { return bytes_; }

 private:
  struct Blocks {
    std::size_t size = 0;   // of each
    std::vector<void*> free;
    std::uint64_t asked = 0;   // when, by the count of calls
  };
  using OfSize = std::unordered_map<std::size_t, Blocks>;

  Blocks& blocks_of(std::size_t size, const void* stream);
  Blocks* longest_unasked();

  std::size_t most_;
  std::unordered_map<const void*, OfSize> of_stream_;
  std::size_t bytes_ = 0;
  std::uint64_t calls_ = 0;
};

}   // namespace pumice
