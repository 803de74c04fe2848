// Shapes, and what a tensor can do without an operator.
#include <pumice/core/tensor.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice {
namespace {

constexpr std::int64_t kGrain = 1 << 16;   // elements a chunk: 50 µs or so, far above a task's cost

template <class From, class To> void convert(const From* from, To* to, std::int64_t elements) {
  parallel_for(elements, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      to[i] = narrow<To>(static_cast<compute_t<To>>(widen(from[i])));
    }
  });
}

std::int64_t bytes_of(const Shape& shape, DType dtype) {
  std::int64_t bytes = 0;
  PUMICE_EXPECTS(
      !__builtin_mul_overflow(shape.elements(), static_cast<std::int64_t>(size_of(dtype)), &bytes),
      "tensor of shape ", to_string(shape), ": more than 2^63 bytes");
  return bytes;
}

}   // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  PUMICE_EXPECTS(rank_ <= kMaxRank, "a tensor of ", rank_, " axes: at most ", kMaxRank);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    PUMICE_EXPECTS(extents[axis] >= 0, "extent ", axis, " of a tensor = ", extents[axis],
                   ": it cannot be negative");
    extents_[axis] = extents[axis];
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = rank_ == 0 ? 0 : 1;
  for (const std::int64_t extent : extents()) {
    PUMICE_EXPECTS(!__builtin_mul_overflow(product, extent, &product), "shape ", to_string(*this),
                   " has more than 2^63 elements");
  }
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

template <bool Const> std::int64_t BasicTensorView<Const>::row_elements() const {
  std::int64_t product = 1;
  for (int axis = 1; axis < shape_.rank(); ++axis)
    product *= shape_[axis];
  return product;
}
template class BasicTensorView<true>;
template class BasicTensorView<false>;

Tensor::Tensor(Shape shape, DType dtype, StreamView stream, std::shared_ptr<Allocator> allocator)
    : storage_(std::make_shared<Buffer<std::byte>>(bytes_of(shape, dtype), stream,
                                                   std::move(allocator))),
      shape_(shape),
      dtype_(dtype) {}

Tensor::Tensor(void* memory, Shape shape, DType dtype, StreamView stream,
               std::shared_ptr<Allocator> owner)
    : storage_(std::make_shared<Buffer<std::byte>>(
          static_cast<std::byte*>(memory), bytes_of(shape, dtype), stream, std::move(owner))),
      shape_(shape),
      dtype_(dtype) {}

Tensor Tensor::zeros(Shape shape, DType dtype, StreamView stream) {
  return full(shape, dtype, 0, stream);
}

Tensor Tensor::full(Shape shape, DType dtype, double value, StreamView stream) {
  Tensor result(shape, dtype, stream);
  fill_async(result.view(), value, stream);
  return result;
}

StreamView Tensor::stream() const {
  return storage_ ? storage_->stream() : StreamView{};
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor result(shape_, dtype_, stream());
  copy_async(result.view(), view(), stream());
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  PUMICE_EXPECTS(shape.elements() == elements(), "reshape of ", to_string(shape_), " to ",
                 to_string(shape), ": the number of elements differs");
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::part(std::int64_t first, Shape shape) const {
  PUMICE_EXPECTS(first >= 0 && first <= elements() && shape.elements() <= elements() - first,
                 "part of ", to_string(shape_), " from element ", first, " with shape ",
                 to_string(shape), ": it does not lie in the tensor");
  Tensor result = *this;
  result.offset_ += first * static_cast<std::int64_t>(size_of(dtype_));
  result.shape_ = shape;
  return result;
}

Tensor Tensor::to(DType dtype) const {
  if (!defined() || dtype == dtype_) return *this;
  PUMICE_EXPECTS(device().kind == DeviceKind::cpu, "a tensor on ", to_string(device()), " from ",
                 name_of(dtype_), " to ", name_of(dtype),
                 ": convert it on the host, before it is copied there");
  Tensor result(shape_, dtype);
  convert_on_host(result.view(), view());
  return result;
}

void convert_on_host(TensorView to, ConstTensorView from) {
  PUMICE_ENSURES(to.shape() == from.shape(), "conversion of ", to_string(from.shape()), " to ",
                 to_string(to.shape()));
  dispatch_floating(from.dtype(), "conversion", [&](auto source) {
    dispatch_floating(to.dtype(), "conversion", [&](auto target) {
      convert(from.data<decltype(source)>(), to.data<decltype(target)>(), from.elements());
    });
  });
}

}   // namespace pumice
