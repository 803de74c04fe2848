// Counts of many sets and maps, read back together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

class CountReader {
 public:
  /// A word that kernels write, which stays until `wait` returns. Its place among what that
  /// returns.
  std::size_t add(const std::int64_t* word) {
    words_.push_back(word);
    return words_.size() - 1;
  }
  /// All words, in the order in which they were added: a launch for every 128, one copy, one wait.
  std::vector<std::int64_t> wait(jit::KernelRunner& runner);

 private:
  std::vector<const std::int64_t*> words_;
};

}   // namespace pumice::cuda
