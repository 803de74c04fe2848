// What is asked of a pattern and of the types of its entries before it is cut, wherever it lies.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/device.hpp>
#include <pumice/formats/decompositions.hpp>

namespace pumice {

/// UserError, in the name of `op`, unless the pattern is on the device of `stream` and its lists
/// fit.
void check_cuttable(const CsrView& pattern, StreamView stream, const char* op);

/// UserError unless there are no types, or one for each entry where the pattern is.
void check_types(const CsrView& pattern, const formats::EdgeTypes& types, const char* op);

/// UserError where there are entries and no part for them.
void check_parts(std::span<const PartShape> shapes, const CsrView& pattern, const char* op);

/// A format that takes more positions for an entry is nearly all padding.
inline constexpr std::int64_t kMostPositionsOfEntry = 64;

/// What a device sorts when it cuts a pattern: entries, and rows that have a line of their own.
inline constexpr std::int64_t kMostItemsOfCut = (std::int64_t{1} << 30) - 1;

/// UserError for a part that would be nearly all padding, above half a gigabyte of positions.
void check_padding(std::int64_t slots, const PartShape& shape, std::int64_t entries,
                   const char* op);

}   // namespace pumice
