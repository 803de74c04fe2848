// Tensors of the framework as tensors of Pumice, which keep them alive.
#pragma once

#include "framework.hpp"

namespace pumice::python {

/// The owner of the memory of one.
class HeldTensor final : public Allocator {
 public:
  HeldTensor(nb::object tensor, const Shape& shape, DType dtype)
      : tensor_(tensor.release()), shape_(shape), dtype_(dtype) {}
  ~HeldTensor() override;
  HeldTensor(const HeldTensor&) = delete;
  HeldTensor& operator=(const HeldTensor&) = delete;

  nb::object tensor() const { return nb::borrow(tensor_); }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }

  void* allocate(std::size_t bytes, StreamView stream) override;
  void deallocate(void* /*data*/, std::size_t /*bytes*/, StreamView /*stream*/) noexcept override {}

 private:
  nb::handle tensor_;
  Shape shape_;
  DType dtype_;
};

/// The memory of a tensor that the framework made, of just this shape and type. With the GIL.
Tensor hold(nb::object tensor, const Shape& shape, DType dtype, StreamView stream);
/// Null where no tensor of the framework is behind it.
const HeldTensor* held_by(const Tensor& tensor);

}   // namespace pumice::python
