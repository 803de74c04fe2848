// PyTorch's switches, which a layer that is computed later has to find as they were.
#pragma once

#include "python_object.hpp"

namespace pumice::python::recorder {

/// Whether gradients are recorded, inference mode, the type of autocast (null where it is off or
/// leaves them alone; PyTorch keeps such types) and the stream.
struct Mode {
  bool learns = false;
  bool infers = false;
  PyObject* autocast = nullptr;
  long long stream = 0;

  friend bool operator==(const Mode&, const Mode&) = default;
};

/// The switches of a call now, on what is on `device` and of `dtype`.
Mode mode_now(bool is_cuda, PyObject* device, PyObject* dtype);
/// (learns, infers, autocast, stream)
nb::object tuple_of(const Mode& mode);

bool learns_now();

/// Whether tensors that are saved for gradients go through hooks, as in the code that
/// torch.utils.checkpoint runs.
bool has_hooks_on_saved();

/// The device of a tensor that is on a GPU, else null.
nb::object gpu_of(PyObject* tensor);
/// Whether nothing in PyTorch watches what a layer does at its call: a graph or transform that is
/// being made, modes, hooks on all modules or on saved tensors, a CUDA graph that is being
/// recorded from the current stream of `gpu`, which is null on the CPU.
bool is_unwatched(PyObject* gpu);
/// The same for an operation that is added to a link, which was made unwatched; also that no mode
/// of functions is active, which handle_torch_function would ask.
bool is_unwatched_operation();

/// How often a tensor was changed in place; 0 in inference mode, where PyTorch does not count.
long version_of(PyObject* tensor);
bool requires_grad(PyObject* tensor);

}   // namespace pumice::python::recorder
