// A tensor turns into what reads it by itself; that it is written stands in the call, as .view().
// fails with: (could not convert|no viable conversion|cannot convert|conversion from) .*Tensor
#include <pumice/ops/activation.hpp>

void in_place(pumice::Tensor& tensor) {
#ifdef PUMICE_MISUSE
  pumice::activate_in_place(tensor, pumice::Activation::relu);
#else
  pumice::activate_in_place(tensor.view(), pumice::Activation::relu);
#endif
}
