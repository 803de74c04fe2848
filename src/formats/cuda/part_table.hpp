// What products on a device go over, made of the lists of all parts.
#pragma once

#include <pumice/formats/decomposed.hpp>
#include <pumice/formats/part_table.hpp>

#include "formats/flat_parts.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Of parts on the device of `runner` whose slots are single entries. O(pieces · log pieces +
/// rows). Waits, and raises what went wrong on the device.
PartTable part_table(jit::KernelRunner& runner, const FlatParts& flat, std::int64_t rows);

/// Room for `size` counts and their sums; `list()` enqueues the sums once counts are written.
class CountedList {
 public:
  CountedList(jit::KernelRunner& runner, std::int64_t size);
  std::uint32_t* counts() { return count_.data(); }
  const std::int64_t* before() const { return before_.data(); }
  std::int64_t size() const { return count_.size(); }
  void sum(jit::KernelRunner& runner);

 private:
  Buffer<std::uint32_t> count_;
  Buffer<std::int64_t> before_;   // [size + 1]
};

}   // namespace pumice::cuda
