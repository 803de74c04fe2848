// Nor does it hand out a pointer to write through.
// fails with: (invalid conversion from|cannot initialize return object of type) .*float
#include <pumice/core/tensor.hpp>

#ifdef PUMICE_MISUSE
using Elements = float*;
#else
using Elements = const float*;
#endif

Elements elements_of(const pumice::Tensor& tensor) {
  return tensor.data<float>();
}
