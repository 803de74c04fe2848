// Epilogues of sums that were made in parts, and sums over rows.
#include "ops/cpu/convolution_sums.hpp"

#include <algorithm>
#include <vector>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {
namespace {

// Rows of one partial sum: long enough that the sum of the partial sums costs nothing, short enough
// that 31 rows and 100,000 both use all threads they can.
constexpr std::int64_t kRowsOfSum = 1024;

/// Address of element `index`, null in an undefined view.
const void* at(ConstTensorView view, std::int64_t index) {
  if (!view.defined()) return nullptr;
  return static_cast<const std::byte*>(view.raw()) +
         static_cast<std::size_t>(index) * size_of(view.dtype());
}

}   // namespace

void finish_rows(ConstTensorView sums, const Epilogue& epilogue, TensorView output) {
  const MicroKernels& kernels = micro_kernels(output.dtype());
  const std::int64_t channels = output.extent(1);
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 14) / channels);
  parallel_for(output.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = row * channels;
      kernels.finish({.sums = at(sums, first),
                      .scale = at(epilogue.scale, 0),
                      .shift = at(epilogue.shift, 0),
                      .residual = at(epilogue.residual, first),
                      .out = static_cast<std::byte*>(output.raw()) +
                             static_cast<std::size_t>(first) * size_of(output.dtype()),
                      .channels = channels,
                      .activation = epilogue.activation,
                      .slope = epilogue.slope});
    }
  });
}

void sum_rows(ConstTensorView rows, TensorView result) {
  dispatch_floating(rows.dtype(), "sum_rows", [&](auto zero) {
    using Compute = compute_t<decltype(zero)>;
    const MicroKernels& kernels = micro_kernels(rows.dtype());
    const std::int64_t channels = rows.extent(1);
    const std::vector<Compute> ones(static_cast<std::size_t>(channels), Compute{1});
    const std::int64_t chunks = (rows.rows() + kRowsOfSum - 1) / kRowsOfSum;
    Tensor partial = Tensor::zeros({chunks, channels}, dtype_of<Compute>);
    Compute* const sums = partial.data<Compute>();
    parallel_for(rows.rows(), kRowsOfSum, [&](std::int64_t begin, std::int64_t end) {
      Compute* const mine = sums + begin / kRowsOfSum * channels;
      for (std::int64_t row = begin; row < end; ++row) {
        kernels.add_product(at(rows, row * channels), ones.data(), mine, channels);
      }
    });
    std::fill_n(result.data<Compute>(), channels, Compute{});
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t c = 0; c < channels; ++c) {
        result.data<Compute>()[c] += sums[chunk * channels + c];
      }
    }
  });
}

}   // namespace pumice::cpu
