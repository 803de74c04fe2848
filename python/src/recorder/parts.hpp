// What the recorder asks of PyTorch and of Python's part of the package, handed over once.
#pragma once

#include <array>

#include <nanobind/nanobind.h>

namespace pumice::python::recorder {

/// Kept for as long as the process lives.
struct Parts {
  // Classes of PyTorch and of pumice.nn.deferred.
  PyObject* Tensor = nullptr;
  PyObject* Parameter = nullptr;
  PyObject* Deferred = nullptr;
  PyObject* Observed = nullptr;
  PyObject* BatchNorm1d = nullptr;
  PyObject* ReLU = nullptr;
  PyObject* Size = nullptr;
  PyObject* norm_forward = nullptr;   // of BatchNorm1d and ReLU, as PyTorch has them
  PyObject* relu_forward = nullptr;
  PyObject* functions = nullptr;   // names of torch.nn.functional, and what two of them were
  PyObject* norm_function = nullptr;
  PyObject* relu_function = nullptr;
  PyObject* call_impl = nullptr;   // Module._call_impl
  PyObject* float64 = nullptr;

  // PyTorch's switches: functions without arguments, unless said otherwise.
  PyObject* make_wrapper = nullptr;   // Tensor._make_wrapper_subclass
  PyObject* learns = nullptr;
  PyObject* infers = nullptr;
  PyObject* any_autocast = nullptr;
  PyObject* autocasts = nullptr;        // (kind of device)
  PyObject* autocast_dtype = nullptr;   // (kind of device)
  PyObject* transforms = nullptr;
  PyObject* dispatch_modes = nullptr;
  PyObject* function_modes = nullptr;
  PyObject* tracing = nullptr;
  PyObject* hooks_on_saved = nullptr;   // (True); None where PyTorch has no such function
  PyObject* is_compiling = nullptr;
  PyObject* raw_stream = nullptr;     // (device index); None without CUDA
  PyObject* compiler = nullptr;       // names of torch.compiler
  PyObject* forward_ad = nullptr;     // names of the module of forward-mode differentiation
  PyObject* global_hooks = nullptr;   // tuple of dictionaries: forward, before, backward, before
  PyObject* get_frame = nullptr;      // sys._getframe

  // Of pumice.nn.deferred.
  PyObject* kinds = nullptr;      // {function of PyTorch: kind of use}
  PyObject* in_place = nullptr;   // set of those that change their argument
  PyObject* asked = nullptr;      // (function, types, args, kwargs): any call on deferred tensors
  PyObject* running = nullptr;    // names of the module that computes links
  PyObject* defers = nullptr;     // names of the module with the switch
  PyObject* went_on =
      nullptr;   // (link, use): the tensor after an operation whose use is not known
  PyObject* goes_back = nullptr;   // (tensor)
  PyObject* plain = nullptr;       // (tensor)
  PyObject* read = nullptr;        // (features, use)
  PyObject* watch = nullptr;       // (): gives the outermost module its hooks
  PyObject* depth_of = nullptr;    // (frame): how far above the caller it is, or None
  PyObject* numerics = nullptr;    // (features): (deterministic, tf32)
  PyObject* made_for = nullptr;    // (features, numerics): what weights are made for
  PyObject* readers = nullptr;     // list of those that hear of each use of what is kept
  PyObject* shorten = nullptr;     // (): looks for the module that has just called
  PyObject* settle = nullptr;      // ()

  // Of pumice.compat.spconv, which may never be imported.
  PyObject* SparseConvTensor = nullptr;
  PyObject* convolution_forward = nullptr;
  PyObject* no_activation = nullptr;
  PyObject* constants = nullptr;   // names of the module of switches
  PyObject* look_up = nullptr;     // (layer, x): (map, what it was found with or None), or None
  PyObject* replace_feature = nullptr;   // (tensor, features), for what is seldom given
};

Parts& parts();

/// A part by its name, for each name in a dictionary. UserError for one that there is not.
void connect(const nanobind::dict& given);

}   // namespace pumice::python::recorder
