// What operators ask of their arguments, as sentences.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice::checks {

/// f64 for f64, f32 for the other floating types: what sums, statistics and parameters are kept in.
inline DType compute_dtype(DType storage) {
  return storage == DType::f64 ? storage : DType::f32;
}

inline bool on_cuda(const ConstTensorView& tensor) {
  return tensor.device().kind == DeviceKind::cuda;
}

/// `tensor`, where there is one, lies with `other`.
inline void same_device(const ConstTensorView& tensor, const ConstTensorView& other,
                        std::string_view op, std::string_view name, std::string_view other_name) {
  PUMICE_EXPECTS(!tensor.defined() || tensor.device() == other.device(), op, ": ", name, " is on ",
                 to_string(tensor.device()), " but ", other_name, " on ", to_string(other.device()),
                 "; copy_to brings one to the other");
}

/// Features lie with the set whose rows they are of.
inline void same_device(const ConstTensorView& tensor, const CoordinateSet& set,
                        std::string_view op, std::string_view name) {
  PUMICE_EXPECTS(tensor.device() == set.device(), op, ": ", name, " is on ",
                 to_string(tensor.device()), " but the coordinate set on ", to_string(set.device()),
                 "; CoordinateSet::copy_to brings it there");
}

/// A matrix of f64, f32, f16 or bf16.
inline void matrix(ConstTensorView tensor, std::string_view op, std::string_view name) {
  PUMICE_EXPECTS(tensor.rank() == 2, op, ": ", name, " has shape ", to_string(tensor.shape()),
                 "; it must be a matrix [rows, channels]");
  PUMICE_EXPECTS(is_floating(tensor.dtype()), op, ": ", name, " holds ", name_of(tensor.dtype()),
                 "; convert it to f64, f32, f16 or bf16");
}

inline void same_dtype(ConstTensorView tensor, DType dtype, std::string_view op,
                       std::string_view name, std::string_view other) {
  PUMICE_EXPECTS(tensor.dtype() == dtype, op, ": ", name, " holds ", name_of(tensor.dtype()),
                 " but ", other, " holds ", name_of(dtype), "; convert one of them");
}

inline void extent(ConstTensorView tensor, int axis, std::int64_t expected, std::string_view op,
                   std::string_view name, std::string_view expected_is) {
  PUMICE_EXPECTS(tensor.extent(axis) == expected, op, ": ", name, " has shape ",
                 to_string(tensor.shape()), "; its extent ", axis, " must be ", expected, ", ",
                 expected_is);
}

/// What is added to a variance.
inline void epsilon(double epsilon, std::string_view op) {
  PUMICE_EXPECTS(epsilon >= 0 && std::isfinite(epsilon), op, ": epsilon = ", epsilon,
                 "; pass a small number such as 1e-5");
}

/// A vector of `size` values.
inline void one_a_channel(ConstTensorView tensor, std::int64_t size, std::string_view op,
                          std::string_view name) {
  PUMICE_EXPECTS(tensor.rank() == 1 && tensor.extent(0) == size, op, ": ", name, " has shape ",
                 to_string(tensor.shape()), "; it must be [", size, "], one value a channel");
}

/// The same of the compute type of `storage`, or undefined.
inline void parameter(ConstTensorView tensor, std::int64_t size, DType storage, std::string_view op,
                      std::string_view name) {
  if (!tensor.defined()) return;
  one_a_channel(tensor, size, op, name);
  PUMICE_EXPECTS(tensor.dtype() == compute_dtype(storage), op, ": ", name, " holds ",
                 name_of(tensor.dtype()), "; for features of ", name_of(storage), " it must be ",
                 name_of(compute_dtype(storage)));
}

/// The same of a batch norm: of the compute type, or of the type of the features itself, as a
/// network that was converted as a whole has it.
inline void norm_parameter(ConstTensorView tensor, std::int64_t size, DType storage,
                           std::string_view op, std::string_view name) {
  if (!tensor.defined() || tensor.dtype() != storage)
    parameter(tensor, size, storage, op, name);
  else
    one_a_channel(tensor, size, op, name);
}

/// Two of them, of one type.
inline void norm_parameters(ConstTensorView first, ConstTensorView second, std::int64_t size,
                            DType storage, std::string_view op, std::string_view first_name,
                            std::string_view second_name) {
  norm_parameter(first, size, storage, op, first_name);
  norm_parameter(second, size, storage, op, second_name);
  if (first.defined() && second.defined())
    same_dtype(second, first.dtype(), op, second_name, first_name);
}

inline void same_shape(ConstTensorView tensor, ConstTensorView other, std::string_view op,
                       std::string_view name, std::string_view other_name) {
  PUMICE_EXPECTS(tensor.shape() == other.shape(), op, ": ", name, " has shape ",
                 to_string(tensor.shape()), " but ", other_name, " has ", to_string(other.shape()),
                 "; they must be equal");
  same_dtype(tensor, other.dtype(), op, name, other_name);
}

}   // namespace pumice::checks
