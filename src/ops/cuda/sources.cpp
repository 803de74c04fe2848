// One module for the elementwise kernels: they compile faster together than apart.
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

jit::KernelName features_kernel(const char* name) {
  static const jit::Source source{.name = "features",
                                  .text =
                                      "#include <pumice/ops/columns.h>\n"
                                      "#include <pumice/ops/elementwise.h>\n"};
  return {&source, name};
}

ElementType element_type(DType type, const char* op, const char* argument) {
  switch (type) {
    case DType::f32: return ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: break;
  }
  detail::raise_user(op, ": ", argument, " holds ", name_of(type),
                     ", which CUDA kernels do not compute in; use f32, f16 or bf16, or the CPU");
}

jit::DeviceRunner runner_for(const ConstTensorView& tensor) {
  return {tensor.stream(), default_allocator(tensor.device())};
}

void check_same_device(const ConstTensorView& tensor, const ConstTensorView& first, const char* op,
                       const char* argument, const char* first_argument) {
  PUMICE_EXPECTS(tensor.device() == first.device(), op, ": ", argument, " is on ",
                 to_string(tensor.device()), ", ", first_argument, " on ",
                 to_string(first.device()), "; copy_to brings one to the other");
}

}   // namespace pumice::cuda
