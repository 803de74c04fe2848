// A view of const elements stays one, though the view itself is copied freely.
// fails with: (could not convert|no viable conversion|conversion from) .*span
#include <pumice/core/tensor.hpp>

#ifdef PUMICE_MISUSE
using Elements = std::span<float>;
#else
using Elements = std::span<const float>;
#endif

Elements elements_of(pumice::ConstTensorView view) {
  return view.span<float>();
}
