// Collects what a sequence of launches wants zeroed or set before it starts, so that one launch
// does it all.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/grid/fill_arguments.h>
#include <pumice/core/buffer.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

class FillList {
 public:
  /// Every 32-bit word of `buffer` becomes `word`. Its elements are whole words.
  template <class T> void add(Buffer<T>& buffer, std::uint32_t word) {
    static_assert(sizeof(T) % 4 == 0);
    add(buffer.data(), static_cast<std::int64_t>(buffer.bytes() / 4), word);
  }
  void add(void* data, std::int64_t words, std::uint32_t word);
  /// One launch for every 32 ranges; the list is empty afterwards.
  void run(jit::KernelRunner& runner);

 private:
  std::vector<FillRange> ranges_;
};

}   // namespace pumice::cuda
