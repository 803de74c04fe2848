// Sorted keys that may repeat, cut into runs of equal keys.
#pragma once

#include <span>

#include <pumice/core/tensor.hpp>

namespace pumice {

struct KeyRuns {
  Buffer<std::uint64_t> keys;   // one a run, ascending
  Tensor run_of;                // int32 [elements]: run of the element named by `order`
  Tensor first;                 // int32 [runs]: element at the start of the run
};

/// `order` names the element each sorted key belongs to.
KeyRuns find_runs(std::span<const std::uint64_t> sorted_keys, std::span<const std::int32_t> order);

/// The distinct ones among sorted keys, each shifted right by `shift` first.
Buffer<std::uint64_t> distinct_keys(std::span<const std::uint64_t> sorted_keys, int shift);

}   // namespace pumice
