// LZF, the compression inside .pcd files.
#pragma once

#include <cstddef>
#include <span>

namespace pumice::detail {

/// What one byte of LZF can grow to at most: three bytes make a copy of 264.
inline constexpr std::size_t kLzfLargestGrowth = 88;

/// Fills all of `out`; false when `in` is not LZF of exactly that length.
bool lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out);

}   // namespace pumice::detail
