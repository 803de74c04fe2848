// How kernels' element types are stored in tensors.
#pragma once

#include <pumice/shared/tile_spec.h>
#include <pumice/core/dtype.hpp>

namespace pumice::test {

inline DType storage_type(ElementType element) {
  return element == ElementType::f16    ? DType::f16
         : element == ElementType::bf16 ? DType::bf16
                                        : DType::f32;
}

}   // namespace pumice::test
