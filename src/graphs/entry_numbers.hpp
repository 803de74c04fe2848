// Lists of row or column numbers of either width, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <pumice/core/error.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

/// Calls body(span) with the elements of a list of i32 or i64.
template <class Body> void with_numbers(ConstTensorView list, Body&& body) {
  if (list.dtype() == DType::i64) {
    body(list.span<std::int64_t>());
  } else {
    body(list.span<std::int32_t>());
  }
}

/// UserError, in the name of `op`, for the first that is none of `limit`.
template <class Number>
void check_numbers(std::span<const Number> numbers, std::int64_t limit, const char* op,
                   const char* name) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<std::int64_t>(numbers[i]);
    PUMICE_EXPECTS(number >= 0 && number < limit, op, ": ", name, "[", i, "] = ", number,
                   " where there are ", limit, ": give numbers from 0 on");
  }
}

}   // namespace pumice
