// Sorting of 64-bit keys with a payload: the one sort that coordinates need.
#pragma once

#include <cstdint>
#include <span>

namespace pumice {

/// Sorts `keys` ascending, carrying `values` along; stable. Only the low `bits` bits of a key are
/// looked at: the others must be equal (normally zero). Parallel, least significant digit first.
void radix_sort_pairs(std::span<std::uint64_t> keys, std::span<std::int32_t> values, int bits);

}   // namespace pumice
