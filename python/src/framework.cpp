// Views of tensors and the start and end of a call.
#include "framework.hpp"

#include <string>
#include <utility>

#include <nanobind/ndarray.h>
#include <pumice/core/error.hpp>
#include <pumice/core/huge_pages.hpp>
#include <pumice/core/stream.hpp>

#include "framework_allocator.hpp"
#include "held_tensor.hpp"
#include "names.hpp"
#include "tensor_look.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

/// An array of another framework that keeps `tensor` alive.
template <class Kind> nb::object export_as(const Tensor& tensor) {
  auto* kept = new Tensor(tensor);
  const nb::capsule owner(kept, [](void* data) noexcept { delete static_cast<Tensor*>(data); });
  std::array<std::size_t, Shape::kMaxRank> extents{};
  const int rank = tensor.shape().rank();
  for (int axis = 0; axis < rank; ++axis)
    extents[static_cast<std::size_t>(axis)] = static_cast<std::size_t>(tensor.shape()[axis]);
  const bool on_cpu = tensor.device().kind == DeviceKind::cpu;
  return nb::cast(nb::ndarray<Kind>(kept->raw(), static_cast<std::size_t>(rank), extents.data(),
                                    owner, nullptr, dlpack_type(tensor.dtype()),
                                    on_cpu ? nb::device::cpu::value : nb::device::cuda::value,
                                    tensor.device().index));
}

}   // namespace

Framework& framework() {
  static Framework& the = *new Framework;   // handles must not be dropped after the interpreter
  return the;
}

bool records_gradients() {
  return framework().learns().ptr() == Py_True;
}

DType Framework::dtype_of(nb::handle framework_dtype, const char* name) const {
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i].ptr() == framework_dtype.ptr()) return static_cast<DType>(i);
  }
  const std::string type = nb::str(framework_dtype).c_str();
  detail::raise_user(name, " is ", type,
                     ": Pumice takes float64, float32, float16, bfloat16, and for indices int64, "
                     "int32, int16 and uint8");
}

namespace {

TensorView view_of_look(const TensorLook& look, const char* name, StreamView stream) {
  PUMICE_EXPECTS(look.is_contiguous, name, " is not contiguous: call .contiguous() on it");
  const int index = look.device_index;
  const bool on_cpu = stream.device.kind == DeviceKind::cpu;
  PUMICE_EXPECTS(on_cpu ? index < 0 : index == stream.device.index, name, " is on ",
                 index < 0 ? std::string("cpu") : "cuda:" + std::to_string(index),
                 " but the other tensors are on ", to_string(stream.device),
                 ": .to() brings it there");
  PUMICE_EXPECTS(look.data != nullptr || look.shape.elements() == 0, name,
                 " has no memory: give a tensor on the CPU or on a CUDA device, not on meta");
  return {look.data, look.dtype, look.shape, stream};
}

/// A view without axes stands for no tensor, so that a number in one would be left out.
void expect_axes(const TensorLook& look, const char* name) {
  PUMICE_EXPECTS(look.shape.rank() > 0, name,
                 " is a tensor without axes, a single number: give one with axes");
}

TensorView writable_view_of(nb::handle tensor, const TensorLook& look, const char* name,
                            StreamView stream) {
  const TensorView view = view_of_look(look, name, stream);
  PUMICE_EXPECTS(!is_negated_once(tensor), name,
                 " is a negated view, which kernels cannot write into: call .resolve_neg() on it");
  return view;
}

}   // namespace

ConstTensorView view_of(nb::handle tensor, const char* name, StreamView stream) {
  if (tensor.is_none()) return {};
  const TensorLook look = look_at(tensor, name);
  expect_axes(look, name);
  return view_of_look(look, name, stream);
}

TensorView mutable_view_of(nb::handle tensor, const char* name, StreamView stream) {
  if (tensor.is_none()) return {};
  const TensorLook look = look_at(tensor, name);
  expect_axes(look, name);
  return writable_view_of(tensor, look, name, stream);
}

ConstTensorView Call::view(nb::handle tensor, const char* name) const {
  if (tensor.is_none()) return {};
  TensorLook look = look_at(tensor, name);
  expect_axes(look, name);
  if (differentiates_forward_) expect_no_derivative(tensor, name);
  if (!look.is_contiguous || is_negated(tensor)) {
    resolved_.push_back(resolved(tensor));
    look = look_at(resolved_.back(), name);
    if (caller_) order_after(stream_, *caller_);   // where that was done
  }
  return view_of_look(look, name, stream_);
}

ConstTensorView Call::matrix(nb::handle tensor, const char* name) const {
  const ConstTensorView made = view(tensor, name);
  PUMICE_EXPECTS(made.rank() == 2, name, " has shape ", to_string(made.shape()),
                 ": give [rows, channels]");
  return made;
}

TensorView single_view_of(nb::handle tensor, const char* name, StreamView stream) {
  if (tensor.is_none()) return {};
  const TensorView view = writable_view_of(tensor, look_at(tensor, name), name, stream);
  PUMICE_EXPECTS(view.rank() == 0 || view.elements() == 1, name, " has shape ",
                 to_string(view.shape()), ": give one element");
  return {view.raw(), view.dtype(), Shape({1}), stream};
}

Call::Call(nb::handle like) : like_(like), results_(like) {
  PUMICE_ENSURES(framework().ready(), "no tensor framework was handed over");
  const int index = device_index_of(like);
  if (index >= 0) {
    const Framework& other = framework();
    PUMICE_EXPECTS(other.has_device(), "a tensor on device ", index,
                   ", which is not one of CUDA: Pumice computes on the CPU and on CUDA devices");
    stream_.device = {DeviceKind::cuda, index};
    const long long current = integer_in(other.current_device());
    if (current != index) {
      other.set_device(index);
      device_before_ = static_cast<int>(current);
    }
    stream_.native = address_in(other.current_stream(index));
    scope_.emplace(stream_.device, framework_allocator(stream_.device));
  }
}

Call::Call(Device device) : results_(nb::handle()) {
  stream_.device = device;
  if (device.kind == DeviceKind::cuda && framework().has_device()) {
    const Framework& other = framework();
    const long long current = integer_in(other.current_device());
    if (current != device.index) {
      other.set_device(device.index);
      device_before_ = static_cast<int>(current);
    }
    stream_.native = address_in(other.current_stream(device.index));
    scope_.emplace(device, framework_allocator(device));
  }
}

void Call::run_on(StreamView home) {
  if (on_cpu() || home.device != stream_.device || home.native == stream_.native) return;
  if (is_capturing(stream_) && !is_capturing(home)) return;
  order_after(home, stream_);
  caller_ = std::exchange(stream_, home);
}

Call::~Call() {
  scope_.reset();
  if (caller_) {
    try {
      order_after(*caller_, stream_);
    } catch (const Error& error) {   // the context is lost, which every later call says too
      PyErr_WarnEx(PyExc_RuntimeWarning, error.what(), 1);
    }
  }
  if (device_before_ < 0) return;
  const nb::object back =
      nb::steal(PyObject_CallFunction(framework().set_device.ptr(), "i", device_before_));
  if (!back.is_valid()) PyErr_Clear();   // the device was current a moment ago
}

namespace {

/// Where the framework has no memory left, what is kept goes back to it first.
nb::object empty_result(nb::handle like, const Shape& shape, DType dtype) {
  try {
    return new_empty(like, shape, dtype);
  } catch (const nb::python_error& error) {
    if (!is_out_of_memory(error) || kept_device_bytes() == 0) throw;
  }
  release_device_memory();
  return new_empty(like, shape, dtype);
}

}   // namespace

Tensor FrameworkResults::make(const Shape& shape, DType dtype, StreamView stream) {
  PUMICE_ENSURES(like_.is_valid(), "a call without a tensor has results");
  const GilTaken gil;
  Tensor made = hold(empty_result(like_, shape, dtype), shape, dtype, stream);
  if (stream.device.kind == DeviceKind::cpu)
    prefer_huge_pages(made.raw(), static_cast<std::size_t>(shape.elements()) * size_of(dtype));
  return made;
}

nb::object Call::give(const Tensor& result) const {
  const HeldTensor* held = held_by(result);
  if (held == nullptr) {
    return result.elements() == 0 ? new_empty(like_, result.shape(), result.dtype())
                                  : share(result);
  }
  PUMICE_ENSURES(held->shape() == result.shape() && held->dtype() == result.dtype(), "a result of ",
                 to_string(result.shape()), " lies in a tensor that was made for ",
                 to_string(held->shape()));
  return held->tensor();
}

nb::object share(const Tensor& tensor) {
  return export_as<nb::pytorch>(tensor);
}

nb::object share_with_numpy(const Tensor& tensor) {
  return export_as<nb::numpy>(tensor);
}

void bind_framework(nb::module_& module) {
  module.def(
      "use_framework",
      [](const nb::sequence& dtypes, nb::object cut, nb::object is_negated, nb::object describe,
         nb::object forward_ad, nb::object has_derivative, nb::object learns) {
        for (std::size_t i = 0; i < framework().dtypes.size(); ++i)
          framework().dtypes[i] = nb::object(dtypes[i]).release();
        framework().cut = cut.release();
        framework().is_negated = is_negated.release();
        framework().describe = describe.release();
        framework().forward_ad = forward_ad.release();
        framework().has_derivative = has_derivative.release();
        framework().learns = learns.release();
      },
      "dtypes"_a, "cut"_a, "is_negated"_a, "describe"_a, "forward_ad"_a, "has_derivative"_a,
      "learns"_a,
      "Hands over the framework's element types, in the order of Pumice's; cut(flat, tensors), "
      "which gives views of a flat tensor in the shapes of others; is_negated(tensor); "
      "describe(object), which says why it is no tensor that kernels can take; the names of the "
      "module of forward-mode differentiation, has_derivative(tensor) in that mode, and learns(), "
      "whether gradients are noted.");
  module.def(
      "use_framework_device",
      [](nb::object raw_allocate, nb::object raw_free, nb::object current_stream,
         nb::object current_device, nb::object set_device) {
        framework().raw_allocate = raw_allocate.release();
        framework().raw_free = raw_free.release();
        framework().current_stream = current_stream.release();
        framework().current_device = current_device.release();
        framework().set_device = set_device.release();
      },
      "raw_allocate"_a, "raw_free"_a, "current_stream"_a, "current_device"_a, "set_device"_a,
      "Hands over the framework's memory and streams on CUDA devices.");
  module.def(
      "use_exchange_table", &use_exchange_table, "capsule"_a, "types"_a,
      "Hands over DLPack's table of functions, and the classes whose tensors it knows best.");
  module.def("has_exchange_table", &has_exchange_table, "Whether there is one that is used.");
  module.def("release_device_memory", &release_device_memory,
             "Gives kept blocks of memory back to the framework.");
  module.def("kept_device_bytes", &kept_device_bytes, "Bytes of kept blocks, on all devices.");
  module.def("close_framework", &close_framework,
             "At the end of the process: memory is no longer given back.");
}

}   // namespace pumice::python
