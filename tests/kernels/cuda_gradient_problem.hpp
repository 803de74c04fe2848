// One weight gradient on a GPU, checked on the host: what the tests and the benchmark of weight
// gradient kernels share.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <pumice/shared/gradient_spec.h>
#include <pumice/core/cuda.hpp>

#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda_tile_problem.hpp"
#include "plan/space/gradient_table.hpp"

namespace pumice::test {

class CudaGradientProblem {
 public:
  CudaGradientProblem(const KernelMapView& map, ElementType operand, std::int32_t in_channels,
                      std::int32_t out_channels, std::int32_t groups, StreamView stream)
      : map_(map),
        in_channels_(in_channels / groups),
        out_channels_(out_channels),
        groups_(groups),
        stream_(stream),
        input_(random_operand({map.in_rows, in_channels}, operand, 1, 1.0)),
        grad_(random_operand({map.out_rows, out_channels}, operand, 2, 1.0)),
        device_input_(copy_to(stream, input_)),
        device_grad_(copy_to(stream, grad_)),
        offset_begin_(
            upload(std::vector<std::int64_t>(map.offset_begin.begin(), map.offset_begin.end()),
                   map.offsets + 1, stream)),
        in_(upload(std::vector<std::int32_t>(map.in.begin(), map.in.end()), map.pairs(), stream)),
        out_(
            upload(std::vector<std::int32_t>(map.out.begin(), map.out.end()), map.pairs(), stream)),
        count_(upload(std::vector<std::int64_t>{map.pairs()}, 1, stream)),
        result_(Shape{map.offsets, in_channels_, out_channels}, DType::f32, stream) {}

  double useful_flop() const {
    return 2.0 * static_cast<double>(map_.pairs() * in_channels_ * out_channels_);
  }

  struct Prepared {
    GradientSpec spec;
    jit::Kernel kernel, sum;
    jit::LaunchShape shape, sum_shape;
    GradientArguments arguments;
    SumSlotsArguments sum_arguments;
    Buffer<float> slots;
  };

  /// `blocks` along x share the pairs; 0: as many as run at a time.
  Prepared prepare(const GradientSpec& spec, std::int64_t blocks = 0) {
    Prepared run;
    run.spec = spec;
    const auto offsets = static_cast<std::int32_t>(map_.offsets);
    if (blocks == 0)
      blocks = cuda::gradient_blocks(spec, cuda_device_info(stream_.device.index).multiprocessors);
    run.kernel = jit::load(stream_.device, {cuda::gradient_name(spec), cuda::gradient_source(spec)})
                     .kernel(cuda::kGradientKernel);
    run.shape = {.blocks = blocks,
                 .blocks_y = gradient_tiles(spec),
                 .threads = threads(spec),
                 .shared_bytes = shared_bytes(spec, offsets)};
    const PairListRef pairs{
        offset_begin_.data(), in_.data(), out_.data(), {count_.data(), map_.pairs()}, offsets};
    run.arguments = {.pairs = pairs,
                     .input = device_input_.raw(),
                     .grad = device_grad_.raw(),
                     .result = result_.data<float>(),
                     .result_channels = static_cast<std::int32_t>(in_channels_)};
    if (spec.write == Write::slots) {
      run.slots =
          Buffer<float>(gradient_slots(offsets, blocks) * in_channels_ * out_channels_, stream_);
      run.arguments.result = run.slots.data();
      run.sum = jit::load(stream_.device, {"sum_slots", cuda::sum_slots_source(ElementType::f32)})
                    .kernel(cuda::kSumSlotsKernel);
      run.sum_shape = {.blocks = (in_channels_ * out_channels_ / 4 + 255) / 256,
                       .blocks_y = offsets,
                       .threads = 256,
                       .shared_bytes = offset_table_bytes(offsets)};
      run.sum_arguments = {.pairs = pairs,
                           .slots = run.slots.data(),
                           .result = result_.raw(),
                           .in_channels = static_cast<std::int32_t>(in_channels_),
                           .columns = out_channels_,
                           .result_channels = static_cast<std::int32_t>(in_channels_),
                           .tile_pairs = spec.tile_pairs,
                           .share_blocks = static_cast<std::int32_t>(blocks)};
    }
    return run;
  }

  /// All that a gradient costs: clearing, or adding slots, included.
  void launch(const Prepared& run) const {
    if (run.spec.write == Write::add) {
      fill_bytes_async(run.arguments.result, std::byte{0}, result_.bytes(), stream_);
    }
    jit::launch(run.kernel, run.shape, stream_, run.arguments);
    if (run.spec.write == Write::slots)
      jit::launch(run.sum, run.sum_shape, stream_, run.sum_arguments);
  }

  Complaint check(Prepared& run) {
    const Tensor first = poisoned_run(run), second = poisoned_run(run);
    if (run.spec.write == Write::slots &&
        std::memcmp(first.raw(), second.raw(), first.bytes()) != 0)
      return "two runs differ in their bits";
    return compare(first);
  }

 private:
  Tensor poisoned_run(Prepared& run) {
    fill_bytes_async(result_.raw(), std::byte{0xff}, result_.bytes(), stream_);
    if (run.slots.size() > 0)
      fill_bytes_async(run.slots.data(), std::byte{0xff}, run.slots.bytes(), stream_);
    launch(run);
    return copy_to_host(result_, stream_);
  }

  /// All output channels of 200 (offset, input channel) pairs.
  Complaint compare(const Tensor& result) const {
    const auto got = result.span<float>();
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!std::isfinite(got[i])) return "element " + std::to_string(i) + " is not finite";
    const Tensor x = input_.to(DType::f32), dy = grad_.to(DType::f32);
    const std::int64_t rows = map_.offsets * in_channels_;
    const std::int64_t step = std::max<std::int64_t>(1, rows / 200);
    std::vector<Complaint> complaints(static_cast<std::size_t>(rows / step + 1));
    parallel_for(rows / step, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        complaints[static_cast<std::size_t>(i)] =
            compare_row(i * step + i % step, x.data<float>(), dy.data<float>(), got.data());
      }
    });
    for (const Complaint& complaint : complaints)
      if (!complaint.empty()) return complaint;
    return {};
  }

  Complaint compare_row(std::int64_t row, const float* x, const float* dy, const float* got) const {
    const std::int64_t k = row / in_channels_, c = row % in_channels_;
    const std::int64_t out_group = out_channels_ / groups_, in_all = in_channels_ * groups_;
    std::vector<double> sum(static_cast<std::size_t>(out_channels_)), magnitude(sum.size());
    const auto begin = map_.offset_begin[static_cast<std::size_t>(k)];
    for (std::int64_t p = begin; p < begin + map_.pairs_of(k); ++p) {
      const float* in = x + map_.in[static_cast<std::size_t>(p)] * in_all;
      const float* out = dy + map_.out[static_cast<std::size_t>(p)] * std::int64_t{out_channels_};
      for (std::int64_t n = 0; n < out_channels_; ++n) {
        const double term =
            static_cast<double>(in[n / out_group * in_channels_ + c]) * static_cast<double>(out[n]);
        sum[static_cast<std::size_t>(n)] += term;
        magnitude[static_cast<std::size_t>(n)] += std::abs(term);
      }
    }
    for (std::int64_t n = 0; n < out_channels_; ++n) {
      const double value = static_cast<double>(got[row * out_channels_ + n]);
      // One rounding, or cut, for each term and each of the few partial sums.
      const double bound = (static_cast<double>(map_.pairs_of(k)) + 64) * 0x1p-23 *
                               magnitude[static_cast<std::size_t>(n)] +
                           1e-6;
      if (!(std::abs(value - sum[static_cast<std::size_t>(n)]) <= bound)) {
        return pumice::detail::concatenate("offset ", k, " channels ", c, ", ", n, ": ", value,
                                           " instead of ", sum[static_cast<std::size_t>(n)],
                                           ", bound ", bound);
      }
    }
    return {};
  }

  KernelMapView map_;
  std::int64_t in_channels_;   // of a group
  std::int32_t out_channels_;
  std::int32_t groups_;
  StreamView stream_;
  Tensor input_, grad_, device_input_, device_grad_;
  Buffer<std::int64_t> offset_begin_;
  Buffer<std::int32_t> in_, out_;
  Buffer<std::int64_t> count_;
  Tensor result_;
};

}   // namespace pumice::test
