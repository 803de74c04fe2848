// Where the products of pairs go before they are rows of an output: an f32 partial result that is
// added to in any order, or a row for each pair, added up in the order of the offsets.
//
//                     Write::add                          Write::slots: the same bits every time
//   pair 0 ▬▬▬ ─┐                               pair 0 ▬▬▬ ─► ▬▬▬ ─┐ pair_of
//   pair 1 ▬▬▬ ─┼─► row ▬▬▬ ─► epilogue         pair 1 ▬▬▬ ─► ▬▬▬ ─┼──────► sum ─► epilogue
//   pair 2 ▬▬▬ ─┘   zeroed                      pair 2 ▬▬▬ ─► ▬▬▬ ─┘
#pragma once

#include <cstdint>

#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_spec.h>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// What makes rows of a type out of sums.
const jit::Source& finish_source_of(ElementType type);

/// Rows that sums become.
struct SumTarget {
  void* output = nullptr;                // [out_rows, channels]
  ElementType type = ElementType::f32;   // of it
  RowCountRef out_rows;
  std::int32_t channels = 0;   // of all groups
  EpilogueArguments epilogue{};
};

/// An f32 partial result that lives as long as the launches that use it: one that is zeroed and
/// added to, or one that is stored for each of `slots` splits of the offsets.
class PartialSums {
 public:
  /// `write`: add or slots.
  PartialSums(jit::KernelRunner& runner, const SumTarget& target, Write write = Write::add,
              std::int32_t slots = 1);
  float* data() { return partial_.data(); }
  /// Enqueues the epilogue. Where `tiles`, of what was added, is poison the output becomes so.
  void finish(jit::KernelRunner& runner, const RowCountRef& tiles);

 private:
  SumTarget target_;
  std::int32_t slots_;   // of the partial result: 1 where it is added to
  Buffer<float> partial_;
};

/// A row for each of as many pairs as there is room for.
class SeparateSums {
 public:
  /// `pair_of`: [out rows, offsets], see index_pairs.
  SeparateSums(jit::KernelRunner& runner, const SumTarget& target, std::int64_t pairs,
               const std::int32_t* pair_of, std::int32_t offsets);
  float* data() { return product_.data(); }
  void finish(jit::KernelRunner& runner, const RowCountRef& tiles);

 private:
  SumTarget target_;
  Buffer<float> product_;
  const std::int32_t* pair_of_;
  std::int32_t offsets_;
};

}   // namespace pumice::cuda
