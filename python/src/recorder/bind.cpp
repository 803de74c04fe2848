// Adds the recorder to the extension.
#include "operations.hpp"
#include "parts.hpp"
#include "recorder.hpp"
#include "region.hpp"
#include "sparse_conv_tensor.hpp"

namespace pumice::python {
namespace recorder {

void bind_chains(nb::module_& module);
void bind_convolution_calls(nb::module_& module);
void bind_needed_links(nb::module_& module);
void bind_waits(nb::module_& module);

}   // namespace recorder

void bind_recorder(nanobind::module_& module) {
  using namespace recorder;
  bind_uses(module);
  bind_links(module);
  bind_region(module);
  bind_tickets(module);
  bind_operations(module);
  bind_sparse_conv_tensor(module);
  bind_convolution_calls(module);
  bind_waits(module);
  bind_needed_links(module);
  bind_chains(module);
  module.def(
      "connect_recorder", [](const nb::dict& given) { connect(given); },
      "Hands over what the recorder asks of PyTorch and of Python, by its names.");
}

}   // namespace pumice::python
