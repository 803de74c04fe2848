// What multiplies dense matrices on CUDA devices, for those who ask.
#pragma once

#include <string>

namespace pumice {

struct DenseProductLibrary {
  bool available = false;
  std::string reason;   // why not, in a sentence; empty when available
  std::string path;
};

/// cuBLAS as this process finds it, which gather_gemm_scatter needs. Never throws.
const DenseProductLibrary& dense_product_library() noexcept;

}   // namespace pumice
