// Pairs of rows that meet themselves: what weights of a linear layer, and of a kernel of one
// offset, get their gradient from.
#pragma once

#include <cstdint>

#include <pumice/shared/pair_list_ref.h>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

class IdentityPairs {
 public:
  /// One launch. Pairs in the order of ranks; `order` names the row of each, null: its own number.
  IdentityPairs(jit::KernelRunner& runner, RowCountRef rows, const std::int32_t* order = nullptr);
  /// For as long as this lives, and the word that counts the rows.
  PairListRef ref() const {
    return {.offset_begin = begin_.data(),
            .in = row_.data(),
            .out = row_.data(),
            .pairs = rows_,
            .offsets = 1};
  }

 private:
  RowCountRef rows_;
  Buffer<std::int32_t> row_;
  Buffer<std::int64_t> begin_;
};

}   // namespace pumice::cuda
