// Memory of the framework for as long as Pumice looks at it.
#include "held_tensor.hpp"

#include <memory>
#include <utility>

#include <pumice/core/error.hpp>

#include "framework_allocator.hpp"
#include "tensor_look.hpp"

namespace pumice::python {

HeldTensor::~HeldTensor() {
  if (framework_is_closed()) return;
  const GilTaken gil;
  tensor_.dec_ref();
}

void* HeldTensor::allocate(std::size_t bytes, StreamView /*stream*/) {
  PUMICE_ENSURES(false, bytes, " bytes were asked of the owner of one tensor");
  return nullptr;
}

Tensor hold(nb::object tensor, const Shape& shape, DType dtype, StreamView stream) {
  void* const data = look_at(tensor, "a result").data;
  PUMICE_EXPECTS(data != nullptr || shape.elements() == 0,
                 "the framework made a result without memory, as it does in a FakeTensorMode: "
                 "call layers and operators of pumice there, not the extension");
  return {data, shape, dtype, stream,
          std::make_shared<HeldTensor>(std::move(tensor), shape, dtype)};
}

const HeldTensor* held_by(const Tensor& tensor) {
  return dynamic_cast<const HeldTensor*>(tensor.allocator());
}

}   // namespace pumice::python
