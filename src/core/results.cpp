// What becomes of each kind of place.
#include <pumice/core/results.hpp>

#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

namespace pumice {

Place Place::zeroed(Tensor memory) {
  Place place(std::move(memory));
  place.is_zeroed_ = true;
  return place;
}

Tensor Place::make(const Shape& shape, DType dtype, StreamView stream, const char* name) const {
  if (results_ != nullptr) return results_->make(shape, dtype, stream);
  if (!memory_.defined()) return {shape, dtype, stream};
  PUMICE_EXPECTS(memory_.shape() == shape && memory_.dtype() == dtype, name, " is ",
                 name_of(memory_.dtype()), ' ', to_string(memory_.shape()), ", but the result is ",
                 name_of(dtype), ' ', to_string(shape), ": give memory of that type and shape");
  PUMICE_EXPECTS(memory_.device() == stream.device, name, " is on ", to_string(memory_.device()),
                 ", but the result is on ", to_string(stream.device), ": give memory there");
  return memory_;
}

Tensor Place::make_zeros(const Shape& shape, DType dtype, StreamView stream,
                         const char* name) const {
  Tensor result = make(shape, dtype, stream, name);
  if (!is_zeroed_) fill_bytes_async(result.raw(), std::byte{0}, result.bytes(), stream);
  return result;
}

Tensor Place::put(Tensor made, const char* name) const {
  if (results_ == nullptr && !is_given()) return made;
  Tensor result = make(made.shape(), made.dtype(), made.stream(), name);
  copy_async(result.view(), made, made.stream());
  return result;
}

}   // namespace pumice
