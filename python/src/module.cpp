// The extension module `pumice._C`: what Pumice is here, its errors, and the stages.
#include <exception>
#include <filesystem>
#include <string>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pumice/coords/voxel_sites.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/jit/support.hpp>

#include "arguments.hpp"
#include "graphs.hpp"
#include "recorder/recorder.hpp"
#include "row_counts.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::dict cuda() {
  const CudaSupport& support = cuda_support();
  nb::dict result;
  result["available"] = support.available;
  result["reason"] = support.reason;
  result["version"] = support.version;
  nb::list devices;
  for (int index = 0; index < support.devices; ++index) {
    const CudaDeviceInfo& info = cuda_device_info(index);
    nb::dict device;
    device["name"] = info.name;
    device["capability"] = nb::make_tuple(info.major, info.minor);
    device["memory_bytes"] = info.memory_bytes;
    devices.append(device);
  }
  result["devices"] = devices;
  return result;
}

nb::dict compiler() {
  const KernelCompiler& found = kernel_compiler();
  nb::dict result;
  result["available"] = found.available;
  result["reason"] = found.reason;
  result["version"] = found.version;
  result["path"] = found.path;
  return result;
}

/// As Python has names of files, which need not be UTF-8.
nb::object text_of(const std::filesystem::path& path) {
  const std::string& bytes = path.native();
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

nb::dict cache() {
  const KernelCache found = kernel_cache();
  nb::dict result;
  result["folder"] = text_of(found.folder);
  result["bytes"] = found.bytes;
  result["kernels"] = found.kernels;
  return result;
}

nb::list bundles() {
  nb::list result;
  for (const KernelBundle& found : kernel_bundles()) {
    nb::dict bundle;
    bundle["path"] = text_of(found.path);
    bundle["problem"] = found.problem;
    bundle["kernels"] = found.kernels;
    bundle["architectures"] = found.architectures;
    result.append(bundle);
  }
  return result;
}

/// The listener is never freed: kernels may be compiled by threads that outlive the interpreter.
void on_kernel_compiled(nb::handle listener) {
  if (listener.is_none()) return pumice::on_kernel_compiled({});
  PyObject* const call = nb::borrow(listener).release().ptr();
  pumice::on_kernel_compiled([call](const CompiledKernel& kernel) {
    if (Py_IsInitialized() == 0) return;
    const GilTaken gil;
    nb::borrow<nb::callable>(call)(kernel.source, kernel.architecture, kernel.milliseconds);
  });
}

void bind_errors(nb::module_& module) {
  // Registered last is asked first: the most general one comes first.
  nb::exception<Error>(module, "Error", PyExc_RuntimeError);
  nb::exception<InternalError>(module, "InternalError", PyExc_RuntimeError);
  const nb::object user_error = nb::exception<UserError>(module, "UserError", PyExc_ValueError);
  nb::exception<NoCellError>(module, "NoCellError", user_error);
}

}   // namespace
}   // namespace pumice::python

NB_MODULE(_C, module) {
  using namespace pumice::python;
  // At the end of the process modules go before what tensors and graphs still hold.
  nb::set_leak_warnings(false);
  bind_errors(module);
  define(module, "cuda_support", &cuda);
  define(module, "kernel_compiler", &compiler);
  define(module, "kernel_cache", &cache);
  define(module, "kernel_bundles", &bundles);
  define(module, "suggest_kernel_compiler", &pumice::suggest_kernel_compiler, "path"_a,
         "A place to look for NVRTC, after PUMICE_NVRTC and before those of the system.");
  define(module, "on_kernel_compiled", &on_kernel_compiled, "listener"_a.none(),
         "Calls listener(source, architecture, milliseconds) after each kernel compiled.");
  define(module, "set_threads", &pumice::set_threads, "threads"_a);
  define(module, "threads", &pumice::threads);
  define(
      module, "wait",
      [](const std::string& device) {
        const Call call(pumice::parse_device(device));
        const GilReleased released;
        pumice::wait(call.stream());
      },
      "device"_a, "Waits for the current stream and raises what went wrong on it.");
  define(
      module, "has_trouble",
      [](const std::string& device, std::intptr_t stream) {
        return pumice::has_trouble({pumice::parse_device(device), reinterpret_cast<void*>(stream)});
      },
      "device"_a, "stream"_a,
      "Whether something went wrong on a stream of that address, as far as it has come: does not "
      "wait.");
  nb::class_<pumice::RefusedWaits>(
      module, "RefusedWaits",
      "As long as it lives, what would wait for a device on this thread raises "
      "UserError.")
      .def(nb::init<>());
  bind_framework(module);
  bind_coords(module);
  bind_maps(module);
  bind_map_plan(module);
  bind_module_state(module);
  bind_tokens(module);
  bind_plans(module);
  bind_convolution(module);
  bind_normalization(module);
  bind_counted(module);
  bind_losses(module);
  bind_weight_layouts(module);
  bind_chain(module);
  bind_tuning(module);
  bind_pooling(module);
  bind_dense(module);
  bind_points(module);
  bind_rows(module);
  bind_graphs(module);
  bind_edge_scores(module);
  bind_formats(module);
  bind_typed_rows(module);
  bind_samples(module);
  bind_typed_edges(module);
  bind_weights(module);
  bind_recorder(module);
}
