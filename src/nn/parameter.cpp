// Values, changes and gradients of parameters.
#include <pumice/nn/parameter.hpp>

#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/ops/elementwise.hpp>

namespace pumice::nn {

DType compute_dtype(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

Parameter::Parameter(const ParameterSpec& spec)
    : spec_(spec), value_(Tensor::full(spec.shape, DType::f32, spec.initial)) {}

Tensor& Parameter::edit() {
  ++version_;
  return value_;
}

void Parameter::set(Tensor value) {
  PUMICE_EXPECTS(value.shape() == value_.shape() && value.dtype() == value_.dtype(),
                 "parameter of shape ", to_string(value_.shape()), " and type ",
                 name_of(value_.dtype()), " cannot take ", to_string(value.shape()), ", ",
                 name_of(value.dtype()), "; reshape or convert the value first");
  edit() = std::move(value);
}

void Parameter::to(DType type) {
  PUMICE_EXPECTS(is_floating(type), "parameters cannot become ", name_of(type),
                 "; use f32, f64, f16 or bf16");
  const DType target = spec_.compute_type ? compute_dtype(type) : type;
  if (target == value_.dtype()) return;
  edit() = convert(value_, target);
  clear_gradient();
}

void Parameter::to(StreamView stream) {
  if (stream == value_.stream()) return;
  PUMICE_EXPECTS(stream.device.kind == DeviceKind::cpu || value_.dtype() != DType::f64,
                 "parameters of f64 are for the CPU; convert them to f32, f16 or bf16 first");
  edit() = stream.device.kind == DeviceKind::cpu ? copy_to_host(value_, value_.stream())
                                                 : copy_to(stream, value_);
  clear_gradient();
}

void Parameter::accumulate(const Tensor& gradient) {
  PUMICE_ENSURES(gradient.shape() == value_.shape(), "gradient ", to_string(gradient.shape()),
                 " of a parameter ", to_string(value_.shape()));
  const Tensor wide = convert(gradient, compute_dtype(value_.dtype()));
  gradient_ = gradient_.defined() ? add(gradient_, wide) : wide;
}

}   // namespace pumice::nn
