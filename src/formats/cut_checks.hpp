// What is asked of a pattern and of the types of its entries before it is cut, wherever it lies.
#pragma once

#include <pumice/core/device.hpp>
#include <pumice/formats/decompositions.hpp>

namespace pumice {

/// UserError, in the name of `op`, unless the pattern is on the device of `stream` and its lists
/// fit.
void check_cuttable(const CsrView& pattern, StreamView stream, const char* op);

/// UserError unless there are no types, or one for each entry where the pattern is.
void check_types(const CsrView& pattern, const formats::EdgeTypes& types, const char* op);

/// UserError for a part that would be nearly all padding.
void check_padding(std::int64_t slots, const PartShape& shape, std::int64_t entries,
                   const char* op);

}   // namespace pumice
