// Takes the parts by their names.
#include "parts.hpp"

#include <string>
#include <unordered_map>

#include <pumice/core/error.hpp>

namespace pumice::python::recorder {

Parts& parts() {
  static Parts the;
  return the;
}

void connect(const nanobind::dict& given) {
  Parts& all = parts();
#define PUMICE_PART(name) \
  { #name, &all.name }
  static const std::unordered_map<std::string, PyObject**> places = {
      PUMICE_PART(Tensor),
      PUMICE_PART(Parameter),
      PUMICE_PART(Deferred),
      PUMICE_PART(Observed),
      PUMICE_PART(BatchNorm1d),
      PUMICE_PART(ReLU),
      PUMICE_PART(Size),
      PUMICE_PART(norm_forward),
      PUMICE_PART(relu_forward),
      PUMICE_PART(call_impl),
      PUMICE_PART(functions),
      PUMICE_PART(norm_function),
      PUMICE_PART(relu_function),
      PUMICE_PART(float64),
      PUMICE_PART(make_wrapper),
      PUMICE_PART(learns),
      PUMICE_PART(infers),
      PUMICE_PART(any_autocast),
      PUMICE_PART(autocasts),
      PUMICE_PART(autocast_dtype),
      PUMICE_PART(transforms),
      PUMICE_PART(dispatch_modes),
      PUMICE_PART(function_modes),
      PUMICE_PART(tracing),
      PUMICE_PART(hooks_on_saved),
      PUMICE_PART(is_compiling),
      PUMICE_PART(raw_stream),
      PUMICE_PART(compiler),
      PUMICE_PART(forward_ad),
      PUMICE_PART(global_hooks),
      PUMICE_PART(get_frame),
      PUMICE_PART(kinds),
      PUMICE_PART(in_place),
      PUMICE_PART(asked),
      PUMICE_PART(running),
      PUMICE_PART(defers),
      PUMICE_PART(went_on),
      PUMICE_PART(goes_back),
      PUMICE_PART(plain),
      PUMICE_PART(read),
      PUMICE_PART(watch),
      PUMICE_PART(depth_of),
      PUMICE_PART(settle),
      PUMICE_PART(SparseConvTensor),
      PUMICE_PART(convolution_forward),
      PUMICE_PART(no_activation),
      PUMICE_PART(constants),
      PUMICE_PART(replace_feature),
      PUMICE_PART(shorten),
      PUMICE_PART(numerics),
      PUMICE_PART(made_for),
      PUMICE_PART(readers),
      PUMICE_PART(look_up)};
#undef PUMICE_PART
  for (const auto& [name, part] : given) {
    const std::string text = nanobind::str(name).c_str();
    const auto place = places.find(text);
    PUMICE_ENSURES(place != places.end(), text, " is no part of the recorder");
    Py_INCREF(part.ptr());
    *place->second = part.ptr();
  }
}

}   // namespace pumice::python::recorder
