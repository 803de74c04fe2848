// Collects what a sequence of launches wants zeroed or set before it starts, so that one launch
// does it all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pumice/grid/fill_arguments.h>
#include <pumice/core/arena.hpp>
#include <pumice/core/buffer.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Room for zeros that one launch writes for those after it; see FillList.
struct ZeroedRoom {
  ZeroedRoom(std::int64_t bytes, StreamView stream, std::shared_ptr<Allocator> source);

  std::shared_ptr<ArenaAllocator> arena;   // that they are taken from
  std::span<std::uint32_t> words;          // all of it, to be filled before
};

class FillList {
 public:
  FillList() = default;
  /// What `zeros` is asked for comes from `zeroed`, which an earlier launch fills with zeros, as
  /// far as that goes. It takes nothing back, so nothing of it is given out twice.
  explicit FillList(std::shared_ptr<ArenaAllocator> zeroed) : zeroed_(std::move(zeroed)) {}

  /// Memory that is zero once the list has run.
  template <class T> Buffer<T> zeros(jit::KernelRunner& runner, std::int64_t size) {
    if (const auto room = room_for(size * static_cast<std::int64_t>(sizeof(T))))
      return Buffer<T>(size, runner.stream(), room);
    Buffer<T> made = runner.make<T>(size);
    add(made, 0);
    return made;
  }
  /// Every 32-bit word of `buffer` becomes `word`. Its elements are whole words.
  template <class T> void add(Buffer<T>& buffer, std::uint32_t word) {
    static_assert(sizeof(T) % 4 == 0);
    add(buffer.data(), static_cast<std::int64_t>(buffer.bytes() / 4), word);
  }
  void add(void* data, std::int64_t words, std::uint32_t word);
  /// One launch for every 32 ranges, none for none; the list is empty afterwards.
  void run(jit::KernelRunner& runner);

 private:
  /// Where there is room for as many zeros already; null: nowhere.
  std::shared_ptr<ArenaAllocator> room_for(std::int64_t bytes) const;

  std::shared_ptr<ArenaAllocator> zeroed_;
  std::vector<FillRange> ranges_;
};

}   // namespace pumice::cuda
