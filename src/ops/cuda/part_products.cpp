#include "ops/cuda/part_products.hpp"

#include <pumice/core/error.hpp>

#include "kernels/cuda/part_launch.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

void expect_single_entries(const Decomposed& parts, const char* op) {
  for (std::size_t part = 0; part < parts.parts().size(); ++part) {
    const PartShape& shape = parts.parts()[part].shape;
    PUMICE_EXPECTS(shape.positions() == 1, op, ": part ", part, " has blocks of ", shape.block_rows,
                   " x ", shape.block_columns,
                   ", over which products run on the CPU; on a device give parts of single "
                   "entries, as hyb, ell, dcsr and csf make, or the pattern itself");
  }
}

}   // namespace

void spmm(const PartReduceArguments& arguments, EntryReduction reduction,
          const TeamSchedule* teams) {
  expect_single_entries(arguments.parts, "spmm");
  element_type(arguments.features.dtype(), "spmm", "features");
  jit::DeviceRunner runner = runner_for(arguments.features);
  launch_gather_parts(runner, arguments, reduction, teams);
}

void sddmm(const PartDotArguments& arguments, const TeamSchedule* teams) {
  expect_single_entries(arguments.parts, "sddmm");
  element_type(arguments.left.dtype(), "sddmm", "left");
  jit::DeviceRunner runner = runner_for(arguments.left);
  launch_dot_parts(runner, arguments, teams);
}

}   // namespace pumice::cuda
