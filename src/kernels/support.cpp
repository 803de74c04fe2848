// What <pumice/kernels/support.hpp> says about this process.
#include <pumice/kernels/support.hpp>

#include "kernels/cuda/cublas.hpp"

namespace pumice {

const DenseProductLibrary& dense_product_library() noexcept {
  static const DenseProductLibrary& library = *new DenseProductLibrary([] {
    const cuda::CublasState& state = cuda::cublas_state();
    return DenseProductLibrary{state.reason.empty(), state.reason, state.path};
  }());
  return library;
}

}   // namespace pumice
