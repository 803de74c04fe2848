// A type of elements and a fill value stand beside each other in calls, and do not change places.
// fails with: (cannot convert|no matching function|no viable conversion|could not convert)
#include <pumice/core/tensor.hpp>

pumice::Tensor ones() {
#ifdef PUMICE_MISUSE
  return pumice::Tensor::full({3}, 1, pumice::DType::f32);
#else
  return pumice::Tensor::full({3}, pumice::DType::f32, 1);
#endif
}
