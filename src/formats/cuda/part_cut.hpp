// Patterns on a device cut into parts there, as formats/cpu/cut_parts.hpp cuts them on the CPU.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/formats/decompositions.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// By the places of entries, on the device.
struct PartAssignment {
  Buffer<std::int32_t> part{};   // [entries] below the number of shapes; empty: all in the first
  Buffer<std::int32_t> type{};   // [entries]; empty: no types
  std::int64_t types = 0;
};

/// Types of entries by place. Those that there are not are reported, and stand for 0.
Buffer<std::int32_t> types_by_place(jit::KernelRunner& runner, const CsrView& pattern,
                                    const formats::EdgeTypes& types, const char* op);

/// Parts of entries, which are given by place, i64 [entries]. Likewise.
Buffer<std::int32_t> parts_by_place(jit::KernelRunner& runner, const CsrView& pattern,
                                    ConstTensorView part, std::int64_t parts, const char* op);

/// Column part · widths + the first of `options.widths` that is as wide as the row, of a type where
/// there are some, has entries there.
Buffer<std::int32_t> hyb_parts(jit::KernelRunner& runner, const CsrView& pattern,
                               const formats::HybOptions& options, const Buffer<std::int32_t>& type,
                               std::int64_t types);

struct RowMeasures {
  std::int64_t longest = 0;   // entries of a row at the most
  std::int64_t filled = 0;    // rows that have some
};
/// Waits.
RowMeasures measure_rows(jit::KernelRunner& runner, const CsrView& pattern);

/// O(items), in a constant number of launches and passes of a sort, where items are entries and,
/// of shapes with all rows, rows. Waits, and raises what went wrong on the device.
Decomposed cut(jit::KernelRunner& runner, const CsrView& pattern, std::span<const PartShape> shapes,
               const PartAssignment& assignment, const char* op);

}   // namespace pumice::cuda
