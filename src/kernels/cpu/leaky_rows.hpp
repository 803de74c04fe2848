// Scores of additive attention of one row, and their gradients: a table for each storage type,
// picked once for the processor at hand.
#pragma once

#include <cstdint>

#include <pumice/core/dtype.hpp>

#include "kernels/cpu/entry_rows.hpp"

namespace pumice::cpu {

/// A head's part of the scores of a row.
struct LeakyRow {
  const void* own;         // of the row
  const void* attention;   // of the head
  const void* entry;       // of the head and entry number 0; null: zeros
  double slope;
};

/// Where gradients of such scores go.
struct LeakyGradient {
  void* own;         // of the row and head
  void* entry;       // of the head and entry number 0; null: not wanted
  void* attention;   // of the head, in the compute type, to which is added; null: not wanted
};

struct LeakyKernels {
  /// output[number · output_pitch] = attention · leaky(own + feature row + entry) of each entry.
  void (*score)(const EntryRow& row, const LeakyRow& score, void* output,
                std::int64_t output_pitch);
  /// The row's values are the gradient of its scores.
  void (*gradient)(const EntryRow& row, const LeakyRow& score, const LeakyGradient& to);
};

const LeakyKernels& leaky_kernels(DType storage);

}   // namespace pumice::cpu
