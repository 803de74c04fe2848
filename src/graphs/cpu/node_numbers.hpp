// Gives numbers to nodes in the order in which a list names them first: a hash table that many
// threads fill, with the same numbers whatever their number.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>

namespace pumice::cpu {

/// A table of nodes, which are numbers from 0 to 2^31 - 2, and of what is known of each.
class NodeNumbers {
 public:
  /// The most entries a list may have.
  static constexpr std::int64_t kMostEntries = (std::int64_t{1} << 31) - 1;

  /// Room for so many different nodes.
  explicit NodeNumbers(std::int64_t nodes);

  /// Makes room for `nodes` more than there are; O(of the table) where it has to grow.
  void reserve(std::int64_t nodes);
  /// Numbers the nodes that have none yet, from `size()` on, in the order in which `named` names
  /// them first; writes the number of each named node, and appends the new ones. There is room.
  void number(std::span<const std::int32_t> named, std::span<std::int32_t> number);
  std::int64_t size() const { return size_; }
  /// The nodes by their numbers.
  std::span<const std::int32_t> nodes() const {
    return nodes_.span().first(static_cast<std::size_t>(size_));
  }

 private:
  Buffer<std::uint64_t>
      slots_;   // a node above, below its number, or kNew + where it is named first
  Buffer<std::int32_t> nodes_;
  std::int64_t size_ = 0;
};

}   // namespace pumice::cpu
