// Who holds a tensor as const does not write its elements.
// fails with: (could not convert|no viable conversion|conversion) .*from .*BasicTensorView
#include <pumice/core/tensor.hpp>

#ifdef PUMICE_MISUSE
using View = pumice::TensorView;
#else
using View = pumice::ConstTensorView;
#endif

View look_at(const pumice::Tensor& tensor) {
  return tensor.view();
}
