// The rows of a coordinate set on a device, batch item by batch item.
#pragma once

#include <pumice/ops/column_arguments.h>
#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/coords/coordinate_set.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Holds where each item's rows begin; they come in key order, batch first. One launch.
class SetItems {
 public:
  SetItems(jit::KernelRunner& runner, const CoordinateSetRef& set, std::int32_t batch_size);
  SetItems(jit::KernelRunner& runner, const CoordinateSet& set);

  /// Valid as long as this.
  const RowItems& rows() const { return rows_; }

 private:
  Buffer<std::int64_t> begin_;
  RowItems rows_{};
};

}   // namespace pumice::cuda
