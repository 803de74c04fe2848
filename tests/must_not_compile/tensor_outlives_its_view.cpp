// A view of a tensor without a name would look at memory that was given back.
// fails with: deleted .*view
#include <pumice/core/tensor.hpp>

pumice::Tensor make();

float first() {
#ifdef PUMICE_MISUSE
  const pumice::ConstTensorView view = make().view();
#else
  const pumice::Tensor tensor = make();
  const pumice::ConstTensorView view = tensor.view();
#endif
  return view.data<float>()[0];
}
