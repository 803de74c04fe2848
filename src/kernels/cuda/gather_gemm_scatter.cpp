// Offsets in groups that fill one packed buffer.
#include "kernels/cuda/gather_gemm_scatter.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <pumice/shared/gather_arguments.h>

#include "kernels/cuda/tile_source.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a multiprocessor; they walk on.
constexpr std::int64_t kMoveBlocks = 8;
/// Groups of small offsets have so many pairs at least.
constexpr std::int64_t kLeastGroup = 16384;

const jit::Source& source() {
  static const jit::Source moves{.name = "gather_scatter", .text = gather_scatter_source()};
  return moves;
}

jit::LaunchShape shape_for(const jit::KernelRunner& runner, std::int64_t items) {
  return {.blocks = std::clamp<std::int64_t>((items + kMoveThreads - 1) / kMoveThreads, 1,
                                             multiprocessors_of(runner.stream()) * kMoveBlocks),
          .threads = kMoveThreads};
}

std::int64_t largest(std::span<const std::int64_t> begin) {
  std::int64_t pairs = 0;
  for (std::size_t k = 0; k + 1 < begin.size(); ++k)
    pairs = std::max(pairs, begin[k + 1] - begin[k]);
  return pairs;
}

/// Packed rows and products, used by one group of offsets after the other.
class Groups {
 public:
  Groups(jit::KernelRunner& runner, MatrixProducts& products, const GatherGemmScatter& convolution)
      : runner_(runner),
        products_(products),
        c_(convolution),
        room_(std::max(largest(c_.offset_begin), std::min(kLeastGroup, c_.offset_begin.back()))),
        row_bytes_(c_.shape.groups * c_.shape.in_channels * element_bytes(c_.shape.operand)),
        columns_(c_.shape.groups * c_.shape.out_channels),
        packed_(runner.make<std::byte>(room_ * row_bytes_)),
        product_(runner.make<float>(room_ * columns_)) {}

  /// Adds the products of all pairs to `sum`.
  void add_to(float* sum) {
    const std::size_t offsets = c_.offset_begin.size() - 1;
    for (std::size_t first = 0; first < offsets;) {
      std::size_t last = first + 1;
      while (last < offsets && c_.offset_begin[last + 1] - c_.offset_begin[first] <= room_)
        ++last;
      add_group(first, last, sum);
      first = last;
    }
  }

 private:
  void add_group(std::size_t first, std::size_t last, float* sum) {
    const std::int64_t begin = c_.offset_begin[first];
    const std::int64_t pairs = c_.offset_begin[last] - begin;
    if (pairs == 0) return;
    runner_.run({&source(), kGatherRowsKernel}, shape_for(runner_, pairs * row_bytes_ / 16),
                GatherRowsArguments{.row = c_.pairs.in + begin,
                                    .from = c_.input,
                                    .to = packed_.data(),
                                    .rows = pairs,
                                    .row_bytes = row_bytes_});
    std::vector<MatrixProduct> group;
    for (std::size_t k = first; k < last; ++k)
      group.push_back(product_of(k, begin));
    products_.multiply(runner_, group);
    for (std::size_t k = first; k < last; ++k) {
      const MatrixProduct& made = group[k - first];
      if (made.rows == 0) continue;
      runner_.run({&source(), kScatterAddKernel}, shape_for(runner_, made.rows * columns_ / 4),
                  ScatterAddArguments{.row = c_.pairs.out + c_.offset_begin[k],
                                      .product = made.output,
                                      .sum = sum,
                                      .rows = made.rows,
                                      .channels = columns_});
    }
  }

  /// Of offset `k` in a group whose first pair is `begin`.
  MatrixProduct product_of(std::size_t k, std::int64_t begin) {
    const std::int64_t at = c_.offset_begin[k] - begin;
    const std::int64_t slice =
        std::int64_t{c_.shape.in_channels} * columns_ * element_bytes(c_.shape.operand);
    return {
        .rows = c_.offset_begin[k + 1] - c_.offset_begin[k],
        .shape = c_.shape,
        .input = packed_.data() + at * row_bytes_,
        .weight = static_cast<const std::byte*>(c_.weight) + static_cast<std::int64_t>(k) * slice,
        .output = product_.data() + at * columns_};
  }

  jit::KernelRunner& runner_;
  MatrixProducts& products_;
  const GatherGemmScatter& c_;
  std::int64_t room_;   // pairs of a group at most
  std::int32_t row_bytes_;
  std::int32_t columns_;
  Buffer<std::byte> packed_;
  Buffer<float> product_;
};

}   // namespace

void gather_gemm_scatter(jit::KernelRunner& runner, MatrixProducts& products,
                         const GatherGemmScatter& convolution) {
  PartialSums sums(runner, convolution.target);
  Groups(runner, products, convolution).add_to(sums.data());
  sums.finish(runner, convolution.pairs.pairs);
}

void multiply_rows(jit::KernelRunner& runner, MatrixProducts& products, MatrixProduct product,
                   const SumTarget& target) {
  PartialSums sums(runner, target);
  product.output = sums.data();
  products.multiply(runner, {&product, 1});
  sums.finish(runner, target.out_rows);
}

}   // namespace pumice::cuda
