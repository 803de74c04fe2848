// Names of attributes and kinds of use, made once.
#pragma once

#include <nanobind/nanobind.h>

namespace pumice::python::recorder {

inline PyObject* word(const char* text) {
  return PyUnicode_InternFromString(text);
}

struct Words {
  // What is done to a result. Python's `uses` takes them from here, so that identity tells them
  // apart.
  PyObject* convolution = word("convolution");
  PyObject* norm = word("norm");
  PyObject* sum = word("sum");
  PyObject* relu = word("relu");
  PyObject* store = word("store");
  PyObject* take = word("take");
  PyObject* join = word("join");
  PyObject* product = word("product");
  PyObject* other = word("other");

  // Of PyTorch's modules and tensors.
  PyObject* parameters = word("_parameters");
  PyObject* buffers = word("_buffers");
  PyObject* forward = word("forward");
  PyObject* forward_hooks = word("_forward_hooks");
  PyObject* forward_pre_hooks = word("_forward_pre_hooks");
  PyObject* backward_hooks = word("_backward_hooks");
  PyObject* backward_pre_hooks = word("_backward_pre_hooks");
  PyObject* compiled_call = word("_compiled_call_impl");
  PyObject* call_impl = word("_call_impl");
  PyObject* is_compiling = word("_is_compiling_flag");
  PyObject* current_level = word("_current_level");
  PyObject* batch_norm = word("batch_norm");
  PyObject* weight = word("weight");
  PyObject* bias = word("bias");
  PyObject* running_mean = word("running_mean");
  PyObject* running_var = word("running_var");
  PyObject* num_batches_tracked = word("num_batches_tracked");
  PyObject* training = word("training");
  PyObject* momentum = word("momentum");
  PyObject* eps = word("eps");
  PyObject* track_running_stats = word("track_running_stats");
  PyObject* inplace = word("inplace");
  PyObject* version = word("_version");
  PyObject* requires_grad = word("requires_grad");
  PyObject* shape = word("shape");
  PyObject* dtype = word("dtype");
  PyObject* device = word("device");
  PyObject* index = word("index");
  PyObject* is_cuda = word("is_cuda");

  // Of sparse tensors and layers of pumice.compat.
  PyObject* features = word("_features");
  PyObject* use = word("_use");
  PyObject* known_sites = word("_known");
  PyObject* indices = word("indices");
  PyObject* spatial_shape = word("spatial_shape");
  PyObject* batch_size = word("batch_size");
  PyObject* indice_dict = word("indice_dict");
  PyObject* benchmark = word("benchmark");
  PyObject* groups = word("groups");
  PyObject* act_type = word("act_type");
  PyObject* kept = word("_kept");
  PyObject* habit = word("habit");
  PyObject* frozen = word("frozen");
  PyObject* packed = word("packed");
  PyObject* lies = word("_lies");
  PyObject* in_channels = word("in_channels");
  PyObject* out_channels = word("out_channels");
  PyObject* indice_key = word("indice_key");
  PyObject* subm = word("subm");
  PyObject* conv1x1 = word("conv1x1");
  PyObject* record_voxel_count = word("record_voxel_count");
  PyObject* computed = word("computed");
  PyObject* output = word("output");
  PyObject* is_subm = word("is_subm");
  PyObject* window = word("window");
  PyObject* numbers = word("numbers");
  PyObject* coords = word("coords");
  PyObject* map = word("map");
  PyObject* ticket = word("ticket");

  // Names in modules of ours.
  PyObject* defers = word("defers");
  PyObject* in_graphs = word("in_graphs");
  PyObject* eval_ignores_autocast = word("EVAL_IGNORES_AUTOCAST");
  PyObject* refuse_as_spconv = word("REFUSE_AS_SPCONV");
  PyObject* compute = word("compute");
  PyObject* convolve_again = word("convolve_again");
};

inline const Words& words() {
  static const Words& all = *new Words;
  return all;
}

}   // namespace pumice::python::recorder
