// Row-major dense arrays: a view that looks, and an owner that shares.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include <pumice/core/buffer.hpp>
#include <pumice/core/dtype.hpp>

namespace pumice {

/// The extents of a tensor, up to six axes.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

/// "[27, 96, 96]"
std::string to_string(const Shape& shape);

/// Looks at a contiguous row-major array someone else owns. A const view hands out const elements.
template <bool Const> class BasicTensorView {
 public:
  using Byte = std::conditional_t<Const, const void, void>;
  BasicTensorView() = default;
  /// `stream`: where work on the elements is enqueued; what is computed from them follows it there.
  BasicTensorView(Byte* data, DType dtype, Shape shape, StreamView stream = {})
      : data_(data), dtype_(dtype), stream_(stream), shape_(shape) {}
  /// A mutable view is usable as a const one.
  template <bool OtherConst>
  requires(Const && !OtherConst)
      // NOLINTNEXTLINE(google-explicit-constructor)
      BasicTensorView(const BasicTensorView<OtherConst>& other)
      : BasicTensorView(other.raw(), other.dtype(), other.shape(), other.stream()) {}

  Byte* raw() const { return data_; }
  DType dtype() const { return dtype_; }
  Device device() const { return stream_.device; }
  StreamView stream() const { return stream_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t extent(int axis) const { return shape_[axis]; }
  std::int64_t rows() const { return shape_.rank() == 0 ? 0 : shape_[0]; }
  /// Elements of one row: the product of all extents but the first.
  std::int64_t row_elements() const;
  std::int64_t elements() const { return shape_.elements(); }
  bool defined() const { return shape_.rank() > 0; }

  /// The elements as `T`, where they are; UserError when the dtype is another.
  template <class T> auto data() const {
    PUMICE_EXPECTS(dtype_ == dtype_of<T>, "this tensor holds ", name_of(dtype_),
                   ", and is read as ", name_of(dtype_of<T>), "; read it as ", name_of(dtype_),
                   ", or convert it first with Tensor::to");
    using Element = std::conditional_t<Const, const T, T>;
    return static_cast<Element*>(data_);
  }
  /// The elements for the host; UserError where they are on a device.
  template <class T> auto span() const {
    PUMICE_EXPECTS(device().kind == DeviceKind::cpu, "this tensor is on ", to_string(device()),
                   ": copy_to_host brings it to the host");
    using Element = std::conditional_t<Const, const T, T>;
    return std::span<Element>(data<T>(), static_cast<std::size_t>(elements()));
  }

 private:
  Byte* data_ = nullptr;
  DType dtype_ = DType::f32;
  StreamView stream_{};
  Shape shape_{};
};

using TensorView = BasicTensorView<false>;
using ConstTensorView = BasicTensorView<true>;

/// Owns an array, counted by reference: copies and parts share the elements, `clone` does not.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised.
  Tensor(Shape shape, DType dtype, StreamView stream = {},
         std::shared_ptr<Allocator> allocator = nullptr);
  /// Takes over memory that somebody else made: `owner` gets it back.
  Tensor(void* memory, Shape shape, DType dtype, StreamView stream,
         std::shared_ptr<Allocator> owner);
  /// Filled, in the order of `stream`.
  static Tensor zeros(Shape shape, DType dtype, StreamView stream = {});
  static Tensor full(Shape shape, DType dtype, double value, StreamView stream = {});
  /// A copy of `values`, of the given shape (default: one axis).
  template <class T> static Tensor from(std::span<const T> values, Shape shape);

  bool defined() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  Device device() const { return stream().device; }
  /// The stream its memory is ordered by.
  StreamView stream() const;
  const Shape& shape() const { return shape_; }
  std::int64_t extent(int axis) const { return shape_[axis]; }
  std::int64_t rows() const { return view().rows(); }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }

  /// Of a tensor that has a name: a view of a temporary one would look at what is gone. An argument
  /// may be one, since it lives as long as the call.
  TensorView view() & { return {raw(), dtype_, shape_, stream()}; }
  ConstTensorView view() const& { return {raw(), dtype_, shape_, stream()}; }
  ConstTensorView view() const&& = delete;
  operator ConstTensorView() const { return view(); }   // NOLINT(google-explicit-constructor)
  void* raw() { return storage_ ? storage_->data() + offset_ : nullptr; }
  const void* raw() const { return storage_ ? storage_->data() + offset_ : nullptr; }
  template <class T> T* data() { return view().data<T>(); }
  template <class T> const T* data() const { return view().data<T>(); }
  template <class T> std::span<T> span() { return view().span<T>(); }
  template <class T> std::span<const T> span() const { return view().span<T>(); }

  /// A copy on the same device, in the order of its stream.
  Tensor clone() const;
  /// The same elements under another shape with as many of them.
  Tensor reshaped(Shape shape) const;
  /// Those from `first` on, under a shape: shares them, and keeps all of the memory alive.
  Tensor part(std::int64_t first, Shape shape) const;
  /// Whose memory it is: null where undefined.
  const Allocator* allocator() const { return storage_ ? storage_->allocator().get() : nullptr; }
  /// A copy converted to `dtype` (round to nearest); shares when the dtype is already that. On the
  /// host only.
  Tensor to(DType dtype) const;

 private:
  std::shared_ptr<Buffer<std::byte>> storage_;
  std::int64_t offset_ = 0;   // bytes from its start
  Shape shape_{};
  DType dtype_ = DType::f32;
};

template <class T> Tensor Tensor::from(std::span<const T> values, Shape shape) {
  PUMICE_ENSURES(shape.elements() == static_cast<std::int64_t>(values.size()), values.size(),
                 " values for shape ", to_string(shape));
  Tensor result(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), result.data<T>());
  return result;
}

}   // namespace pumice
