// Whether two tensors on the host are the same, to the bit.
#pragma once

#include <cstring>

#include <pumice/core/tensor.hpp>

namespace pumice::test {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}   // namespace pumice::test
