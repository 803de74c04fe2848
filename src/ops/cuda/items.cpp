// Batch items of sets.
#include "ops/cuda/items.hpp"

#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/set_operations.hpp"

namespace pumice::cuda {

SetItems::SetItems(jit::KernelRunner& runner, const CoordinateSetRef& set, std::int32_t batch_size)
    : begin_(batch_ranges(runner, set, batch_size)),
      rows_{.rows = set.rows, .begin = begin_.data(), .order = set.order, .items = batch_size} {}

SetItems::SetItems(jit::KernelRunner& runner, const CoordinateSet& set)
    : SetItems(runner, ref_of(set), set.batch_size()) {}

}   // namespace pumice::cuda
