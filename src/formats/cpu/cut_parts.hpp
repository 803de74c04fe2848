// Cutting a pattern into parts of given shapes: what all formats are made by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/formats/decompositions.hpp>

namespace pumice::cpu {

/// By the places of entries.
struct Assignment {
  Buffer<std::int32_t> part{};   // [entries] below the number of shapes; empty: all in the first
  Buffer<std::int32_t> type{};   // [entries]; empty: no types
  std::int64_t types = 0;
};

/// [entries] by place, checked; empty without types.
Buffer<std::int32_t> types_by_place(const CsrView& pattern, const formats::EdgeTypes& types,
                                    const char* op);

/// The row of each place.
Buffer<std::int32_t> rows_of_places(const CsrView& pattern);

/// What `parts` are of.
DecomposedLists lists_of(const CsrView& pattern, std::vector<Part> parts);

/// O(entries + rows + positions), and for each shape with blocks O(rows + columns) more.
Decomposed cut(const CsrView& pattern, std::span<const PartShape> shapes,
               const Assignment& assignment, const char* op);

}   // namespace pumice::cpu
