// Two ways to look at a tensor: DLPack's table of C functions, and the tensor's Python methods.
#include "tensor_look.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <nanobind/ndarray.h>
#include <pumice/core/error.hpp>

#include "framework.hpp"
#include "names.hpp"

namespace pumice::python {
namespace {

/// DLPackExchangeAPI of DLPack 1.3, https://dmlc.github.io/dlpack/latest/c_api.html. Functions
/// return 0, or something else with an exception of Python set.
struct ExchangeTable {
  std::uint32_t major;
  std::uint32_t minor;
  ExchangeTable* previous;   // of an earlier major version
  void* allocate;
  void* from_object;
  void* to_object;
  int (*look)(void* object, nb::dlpack::dltensor* out);   // may be null
  void* current_stream;
};

constexpr std::uint32_t kMajor = 1;
constexpr std::size_t kMostTypes = 2;

struct Exchange {
  const ExchangeTable* table = nullptr;
  std::array<PyObject*, kMostTypes> types{};
};

Exchange& exchange() {
  static Exchange the;
  return the;
}

/// In the order of DType.
constexpr std::array kDlpackTypes = [] {
  using Code = nb::dlpack::dtype_code;
  const auto of = [](Code code, int bits) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  };
  return std::array{of(Code::Float, 64),  of(Code::Float, 32), of(Code::Float, 16),
                    of(Code::Bfloat, 16), of(Code::Int, 64),   of(Code::Int, 32),
                    of(Code::Int, 16),    of(Code::UInt, 8)};
}();

std::optional<DType> dtype_of(nb::dlpack::dtype type) {
  for (std::size_t i = 0; i < kDlpackTypes.size(); ++i) {
    if (kDlpackTypes[i] == type) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_contiguous(const nb::dlpack::dltensor& tensor, const Shape& shape) {
  if (tensor.strides == nullptr || shape.elements() == 0) return true;
  std::int64_t expected = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 1) continue;
    if (tensor.strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

std::optional<TensorLook> look_by_table(nb::handle tensor) {
  const Exchange& way = exchange();
  if (way.table == nullptr) return std::nullopt;
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr()));
  if (type != way.types[0] && type != way.types[1]) return std::nullopt;
  nb::dlpack::dltensor found;
  const bool is_known = way.table->look(tensor.ptr(), &found) == 0;
  if (!is_known) {   // it has no memory of its own, or is on a device without a name there
    PyErr_Clear();
    return std::nullopt;
  }
  const bool on_cpu = found.device.device_type == nb::device::cpu::value;
  const std::optional<DType> dtype = dtype_of(found.dtype);
  if (!dtype || found.ndim > Shape::kMaxRank ||
      (!on_cpu && found.device.device_type != nb::device::cuda::value))
    return std::nullopt;
  TensorLook result;
  result.shape =
      Shape(std::span<const std::int64_t>(found.shape, static_cast<std::size_t>(found.ndim)));
  result.data = static_cast<std::byte*>(found.data) + found.byte_offset;
  result.device_index = on_cpu ? -1 : found.device.device_id;
  result.dtype = *dtype;
  result.is_contiguous = is_contiguous(found, result.shape);
  return result;
}

Shape shape_of(nb::handle tensor) {
  const nb::object extents = attribute(tensor, names().shape);
  const auto rank = static_cast<int>(PyTuple_Size(extents.ptr()));
  PUMICE_EXPECTS(rank <= Shape::kMaxRank, "a tensor of ", rank, " axes: at most ", Shape::kMaxRank);
  std::array<std::int64_t, Shape::kMaxRank> values{};
  for (int axis = 0; axis < rank; ++axis) {
    values[static_cast<std::size_t>(axis)] =
        PyLong_AsLongLong(PyTuple_GetItem(extents.ptr(), axis));
  }
  return Shape(std::span<const std::int64_t>(values.data(), static_cast<std::size_t>(rank)));
}

/// What any object may raise that is asked as a tensor.
bool says_it_is_none(const nb::python_error& error) {
  return error.matches(PyExc_RuntimeError) || error.matches(PyExc_AttributeError);
}

TensorLook look_by_methods(nb::handle tensor, const char* name) {
  TensorLook result;
  const std::string kind =
      framework().describe.is_valid() ? nb::str(framework().describe(tensor)).c_str() : "";
  PUMICE_EXPECTS(kind.empty(), name, " is ", kind);
  try {
    result.dtype = framework().dtype_of(attribute(tensor, names().dtype), name);
    result.is_contiguous = call_method(tensor, names().is_contiguous).ptr() == Py_True;
    result.device_index = static_cast<int>(integer_in(call_method(tensor, names().get_device)));
    result.data = address_in(call_method(tensor, names().data_ptr));
    result.shape = shape_of(tensor);
  } catch (const nb::python_error& error) {
    if (!says_it_is_none(error)) throw;
    pumice::detail::raise_user(name,
                               " has no memory of its own: give a tensor on the CPU or on a CUDA "
                               "device");
  }
  return result;
}

}   // namespace

nb::dlpack::dtype dlpack_type(DType type) {
  return kDlpackTypes[static_cast<std::size_t>(type)];
}

TensorLook look_at(nb::handle tensor, const char* name) {
  if (std::optional<TensorLook> found = look_by_table(tensor)) return *found;
  return look_by_methods(tensor, name);
}

void* address_of(nb::handle tensor) {
  if (const std::optional<TensorLook> found = look_by_table(tensor)) return found->data;
  return address_in(call_method(tensor, names().data_ptr));
}

int device_index_of(nb::handle tensor) {
  if (const std::optional<TensorLook> found = look_by_table(tensor)) return found->device_index;
  try {
    return static_cast<int>(integer_in(call_method(tensor, names().get_device)));
  } catch (const nb::python_error& error) {
    if (!says_it_is_none(error)) throw;
    return -1;
  }
}

bool is_negated(nb::handle tensor) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr())) == exchange().types[1])
    return is_negated_once(tensor);
  return framework().is_negated(tensor).ptr() == Py_True;
}

bool is_negated_once(nb::handle tensor) {
  struct Known {
    PyObject* tensor = nullptr;
    PyObject* reference = nullptr;   // weak; leads nowhere once the tensor is gone
  };
  constexpr int kBits = 13;   // few of a network's 1,000 tensors share a place then
  static std::array<Known, std::size_t{1} << kBits> known{};
  constexpr std::uint64_t kMixes = 0x9e3779b97f4a7c15;   // the golden ratio, as hashes use it
  Known& entry = known[reinterpret_cast<std::uintptr_t>(tensor.ptr()) * kMixes >> (64 - kBits)];
  if (entry.tensor == tensor.ptr() && PyWeakref_GetObject(entry.reference) == tensor.ptr())
    return false;
  if (framework().is_negated(tensor).ptr() == Py_True) return true;
  PyObject* reference = PyWeakref_NewRef(tensor.ptr(), nullptr);
  if (reference == nullptr) {
    PyErr_Clear();   // a class without weak references is asked again
    return false;
  }
  Py_XDECREF(entry.reference);
  entry = {.tensor = tensor.ptr(), .reference = reference};
  return false;
}

bool differentiates_forward() {
  PyObject* level = PyDict_GetItemWithError(framework().forward_ad.ptr(), names().current_level);
  return level != nullptr && PyLong_AsLong(level) >= 0;
}

void expect_no_derivative(nb::handle tensor, const char* name) {
  PUMICE_EXPECTS(framework().has_derivative(tensor).ptr() != Py_True, name,
                 " carries a derivative of forward mode, which operators of Pumice do not pass on: "
                 "use backward mode, torch.autograd.grad");
}

nb::object resolved(nb::handle tensor) {
  nb::object dense = call_method(tensor, names().contiguous);
  return is_negated(dense) ? call_method(dense, names().resolve_neg) : dense;
}

void use_exchange_table(nb::handle capsule, const nb::sequence& types) {
  constexpr const char* kName = "dlpack_exchange_api";
  if (PyCapsule_IsValid(capsule.ptr(), kName) == 0) return;   // what others may have put there
  const auto* table = static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  while (table != nullptr && table->major != kMajor)
    table = table->previous;
  if (table == nullptr || table->look == nullptr) return;
  PUMICE_EXPECTS(nb::len(types) == kMostTypes, "give ", kMostTypes, " classes of tensors");
  for (std::size_t i = 0; i < kMostTypes; ++i)   // kept for as long as the process lives
    exchange().types[i] = nb::object(types[i]).release().ptr();
  exchange().table = table;
}

bool has_exchange_table() {
  return exchange().table != nullptr;
}

}   // namespace pumice::python
