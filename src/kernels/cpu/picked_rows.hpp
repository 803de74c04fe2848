// Entries of one row that were picked as the largest or smallest, channel by channel: a table of
// loops for each storage type, picked once for the processor at hand.
#pragma once

#include <cstdint>

#include "kernels/cpu/entry_rows.hpp"

namespace pumice::cpu {

struct PickedKernels {
  /// output[c] = Σ value · feature of the entries whose number stands in `picked` at their row of
  /// features; `picked` is that of row 0 and lies as the features do.
  void (*sum)(const EntryRow& row, const std::int64_t* picked, void* output);
  /// The same where no entry has a number beyond 32 bits.
  void (*sum_narrow)(const EntryRow& row, const std::int32_t* picked, void* output);
  /// output[number · output_pitch] = Σ left · feature of each entry, over the channels where
  /// `picked` names it.
  void (*dot)(const EntryRow& row, const void* left, const std::int64_t* picked, void* output,
              std::int64_t output_pitch);
};

const PickedKernels& picked_kernels(DType storage);

}   // namespace pumice::cpu
