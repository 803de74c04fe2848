// Checks the arguments of copies with axes in another order and calls the back end.
#include <pumice/ops/permutation.hpp>

#include <pumice/core/error.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/permutation.hpp"
#include "ops/cuda/permutation.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

void check(const Permutation& copy, const ConstTensorView& first) {
  const char* op = "permute";
  const Shape& shape = copy.from.shape();
  unsigned named = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = copy.order[static_cast<std::size_t>(axis)];
    PUMICE_EXPECTS(from >= 0 && from < shape.rank() && (named >> from & 1u) == 0, op,
                   ": order: axis ", axis, " is axis ", from, " of a tensor of shape ",
                   to_string(shape), "; name each of its axes once");
    named |= 1u << from;
  }
  checks::same_dtype(copy.to, copy.from.dtype(), op, "to", "from");
  checks::same_device(copy.from, first, op, "from", "the first of the tensors");
  checks::same_device(copy.to, copy.from, op, "to", "from");
  PUMICE_EXPECTS(copy.to.elements() == shape.elements(), op, ": to has shape ",
                 to_string(copy.to.shape()), " and from ", to_string(shape),
                 "; they must hold as many elements");
}

}   // namespace

void permute(std::span<const Permutation> copies) {
  for (const Permutation& copy : copies)
    check(copy, copies.front().from);
  if (copies.empty()) return;
  if (checks::on_cuda(copies.front().from)) {
    jit::DeviceRunner runner = cuda::runner_for(copies.front().from);
    cuda::permute(runner, copies);
  } else {
    cpu::permute(copies);
  }
}

}   // namespace pumice
