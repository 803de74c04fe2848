// One convolution on a GPU through tile kernels, checked on the host row by row: what the tests and
// the benchmark of tile kernels share.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <pumice/shared/pack_weight.h>
#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_limits.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/half.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/tensor.hpp>

#include "jit/module.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "kernels/host_tile_map.hpp"
#include "kernels/storage_type.hpp"

namespace pumice::test {

template <class T>
Buffer<T> upload(const std::vector<T>& values, std::int64_t room, StreamView to) {
  Buffer<T> buffer(room, to);
  if (room > 0) fill_bytes_async(buffer.data(), std::byte{0xff}, buffer.bytes(), to);
  if (!values.empty()) {
    copy_async(buffer.data(), to.device, values.data(), {}, values.size() * sizeof(T), to);
  }
  return buffer;
}

/// A tile map in device memory whose counts lie there too, below their capacities, so that kernels
/// are launched over more tiles than there are.
class DeviceTileMap {
 public:
  DeviceTileMap(const HostTileMap& map, StreamView stream, std::int64_t spare_tiles = 0)
      : order_(upload(map.order, map.tiles() + spare_tiles, stream)),
        entry_(upload(map.entry, static_cast<std::int64_t>(map.entry.size()), stream)),
        in_row_(upload(map.in_row, static_cast<std::int64_t>(map.in_row.size()), stream)),
        out_row_(upload(map.out_row, static_cast<std::int64_t>(map.out_row.size()), stream)),
        count_(upload<std::int64_t>({map.tiles(), map.in_rows, map.out_rows}, 3, stream)) {
    ref_ = {.tile_order = order_.data(),
            .entry = entry_.data(),
            .in_row = in_row_.data(),
            .out_row = out_row_.data(),
            .tiles = {count_.data(), map.tiles() + spare_tiles},
            .in_rows = {count_.data() + 1, map.in_rows},
            .out_rows = {count_.data() + 2, map.out_rows},
            .tile_rows = map.tile_rows,
            .offsets = map.offsets};
  }
  const TileMapRef& ref() const { return ref_; }

 private:
  Buffer<TileRun> order_;
  Buffer<TileEntry> entry_;
  Buffer<std::int32_t> in_row_;
  Buffer<std::int32_t> out_row_;
  Buffer<std::int64_t> count_;
  TileMapRef ref_{};
};

/// Uniform values of a type, made in parallel; of tf32 those that it holds exactly, so that
/// rounding the operands changes nothing.
inline Tensor random_operand(Shape shape, ElementType type, std::uint64_t seed, double scale) {
  Tensor tensor(shape, DType::f32);
  auto all = tensor.span<float>();
  parallel_for(tensor.elements(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    Random random(seed, static_cast<std::uint64_t>(begin));
    for (std::int64_t i = begin; i < end; ++i) {
      const auto value = static_cast<float>(random.uniform(-scale, scale));
      all[static_cast<std::size_t>(i)] =
          type == ElementType::tf32
              ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000u)
              : value;
    }
  });
  return tensor.to(storage_type(type));
}

/// What is wrong with a result; empty when nothing is.
using Complaint = std::string;

/// Convolutions of one map, one pair of channels and one type.
class CudaTileProblem {
 public:
  CudaTileProblem(const KernelMapView& map, ElementType operand, std::int32_t in_channels,
                  std::int32_t out_channels, std::int32_t groups, StreamView stream)
      : map_(map),
        in_channels_(in_channels),
        out_channels_(out_channels),
        groups_(groups),
        stream_(stream),
        table_(detail::neighbour_table(map)),
        input_(random_operand({map.in_rows, in_channels}, operand, 1, 1.0)),
        weight_(random_operand({map.offsets, in_channels / groups, out_channels}, operand, 2,
                               1.0 / std::sqrt(6.0 * in_channels / groups))),
        device_input_(copy_to(stream, input_)),
        device_weight_(copy_to(stream, weight_)) {}

  std::int64_t pairs() const { return map_.pairs(); }
  double useful_flop() const {
    return 2.0 * static_cast<double>(pairs()) * in_channels_ / groups_ * out_channels_;
  }

  /// Everything a kernel needs, made before any of it is timed.
  struct Prepared {
    TileSpec spec;
    const HostTileMap* host = nullptr;
    const DeviceTileMap* tiles = nullptr;
    Buffer<std::byte> weight;
    Tensor output;
    jit::Kernel kernel;
    jit::LaunchShape shape;
    TileArguments arguments;
    // With Write::add and Write::slots: the partial results and what finishes them.
    Buffer<float> partial;
    jit::Kernel finish;
    FinishArguments finish_arguments;
  };

  Prepared prepare(const TileSpec& spec, int splits = 1) {
    Prepared run;
    run.spec = spec;
    const auto& [host, tiles] = tiles_for(spec.tile_rows, splits);
    run.host = &host;
    run.tiles = &tiles;
    const WeightLayout layout = weight_layout(spec, static_cast<std::int32_t>(map_.offsets));
    run.weight = Buffer<std::byte>(packed_bytes(layout), stream_);
    pack(layout, device_weight_, run.weight.data());
    run.output = Tensor(Shape{map_.out_rows, out_channels_}, storage_type(spec.output), stream_);
    run.kernel = jit::load(stream_.device, {tile_name(spec), cuda::tile_source(spec)})
                     .kernel(cuda::kTileKernel);
    run.shape = {.blocks = tile_blocks(spec, tiles.ref().tiles.capacity,
                                       cuda_device_info(stream_.device.index).multiprocessors),
                 .blocks_y = spec.groups * column_tiles(spec),
                 .threads = threads(spec),
                 .shared_bytes = shared_bytes(spec)};
    run.arguments = {.map = tiles.ref(),
                     .input = device_input_.raw(),
                     .weight = run.weight.data(),
                     .output = run.output.raw()};
    if (spec.write != Write::store) prepare_partial(run, splits);
    return run;
  }

  void launch(const Prepared& run) const {
    jit::launch(run.kernel, run.shape, stream_, run.arguments);
    if (run.spec.write != Write::store)
      jit::launch(run.finish, {.blocks = 1056, .threads = 256}, stream_, run.finish_arguments);
  }

  /// Runs on a poisoned output and compares rows spread over all of it with sums in float64. A
  /// second run must give the same bits, unless splits add in any order.
  Complaint check(Prepared& run) {
    const Tensor first = poisoned_run(run);
    const Tensor second = poisoned_run(run);
    if (run.spec.write != Write::add && std::memcmp(first.raw(), second.raw(), first.bytes()) != 0)
      return "two runs differ in their bits";
    return compare(first);
  }

  static std::string tile_name(const TileSpec& spec) { return cuda::tile_name(spec); }

 private:
  /// Zeros for Write::add, which every run leaves behind again; NaN for slots.
  void prepare_partial(Prepared& run, int splits) {
    const int slots = run.spec.write == Write::slots ? splits : 1;
    run.partial = Buffer<float>(slots * map_.out_rows * out_channels_, stream_);
    fill_bytes_async(run.partial.data(), std::byte(slots > 1 ? 0xff : 0), run.partial.bytes(),
                     stream_);
    run.arguments.output = run.partial.data();
    run.finish =
        jit::load(stream_.device, {cuda::kFinishKernel, cuda::finish_source(run.spec.output)})
            .kernel(cuda::kFinishKernel);
    run.finish_arguments = {.partial = run.partial.data(),
                            .output = run.output.raw(),
                            .tiles = run.tiles->ref().tiles,
                            .out_rows = run.tiles->ref().out_rows,
                            .channels = out_channels_,
                            .slots = slots,
                            .clear = run.spec.write == Write::add};
  }

  using TilePair = std::pair<HostTileMap, DeviceTileMap>;

  const TilePair& tiles_for(std::int32_t tile_rows, int splits) {
    const auto key = std::make_pair(tile_rows, splits);
    auto found = tiles_.find(key);
    if (found == tiles_.end()) {
      HostTileMap host = host_tile_map(map_, tile_rows, splits);
      DeviceTileMap device(host, stream_, 7);
      found = tiles_.emplace(key, TilePair(std::move(host), std::move(device))).first;
    }
    return found->second;
  }

  void pack(const WeightLayout& layout, const Tensor& weight, std::byte* packed) const {
    const jit::Kernel kernel = jit::load(stream_.device, {cuda::kPackKernel, cuda::pack_source()})
                                   .kernel(cuda::kPackKernel);
    const PackWeightArguments arguments{
        .layout = layout, .weight = weight.raw(), .packed = packed, .source = layout.operand};
    jit::launch(kernel, {.blocks = 264, .threads = 256}, stream_, arguments);
  }

  Tensor poisoned_run(Prepared& run) const {
    fill_bytes_async(run.output.raw(), std::byte{0xff}, run.output.bytes(), stream_);
    launch(run);
    return copy_to_host(run.output, stream_);
  }

  Complaint compare(const Tensor& output) const {
    const Tensor y = output.to(DType::f32), x = input_.to(DType::f32), w = weight_.to(DType::f32);
    const auto got = y.span<float>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!std::isfinite(got[i])) {
        return pumice::detail::concatenate("row ", i / static_cast<std::size_t>(out_channels_),
                                           " channel ", i % static_cast<std::size_t>(out_channels_),
                                           " is not finite");
      }
    }
    // Products of half types are exact in fp32; sums are rounded once for each term, and tensor
    // cores cut instead of rounding. Storing rounds once.
    const double storing = output.dtype() == DType::f16    ? 0x1p-11
                           : output.dtype() == DType::bf16 ? 0x1p-8
                                                           : 0x1p-24;
    const double work = useful_flop() / 2 / static_cast<double>(map_.out_rows);
    const auto samples = std::clamp<std::int64_t>(static_cast<std::int64_t>(2e8 / work), 16, 4096);
    const std::int64_t step = std::max<std::int64_t>(1, map_.out_rows / samples);
    std::vector<Complaint> complaints(static_cast<std::size_t>(map_.out_rows / step + 1));
    parallel_for(map_.out_rows / step, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) {
        complaints[static_cast<std::size_t>(sample)] =
            compare_row(sample * step + sample % step, x.data<float>(), w.data<float>(),
                        y.data<float>(), storing);
      }
    });
    for (const Complaint& complaint : complaints)
      if (!complaint.empty()) return complaint;
    return {};
  }

  Complaint compare_row(std::int64_t row, const float* x, const float* w, const float* y,
                        double storing) const {
    const std::int64_t in_group = in_channels_ / groups_, out_group = out_channels_ / groups_;
    std::vector<double> sum(static_cast<std::size_t>(out_channels_)), magnitude(sum.size());
    double terms = 8;
    for (std::int64_t k = 0; k < map_.offsets; ++k) {
      const std::int64_t in = table_[static_cast<std::size_t>(row * map_.offsets + k)];
      if (in < 0) continue;
      terms += static_cast<double>(in_group);
      for (std::int64_t c = 0; c < in_group; ++c) {
        const float* weights = w + (k * in_group + c) * out_channels_;
        for (std::int64_t n = 0; n < out_channels_; ++n) {
          const double term =
              static_cast<double>(x[in * in_channels_ + n / out_group * in_group + c]) *
              static_cast<double>(weights[n]);
          sum[static_cast<std::size_t>(n)] += term;
          magnitude[static_cast<std::size_t>(n)] += std::abs(term);
        }
      }
    }
    for (std::size_t n = 0; n < sum.size(); ++n) {
      const double got = static_cast<double>(y[row * out_channels_ + static_cast<std::int64_t>(n)]);
      const double bound = terms * 0x1p-23 * magnitude[n] + storing * std::abs(sum[n]) + 1e-7;
      if (!(std::abs(got - sum[n]) <= bound)) {
        return pumice::detail::concatenate("row ", row, " channel ", n, ": ", got, " instead of ",
                                           sum[n], ", bound ", bound);
      }
    }
    return {};
  }

  KernelMapView map_;
  std::int32_t in_channels_;
  std::int32_t out_channels_;
  std::int32_t groups_;
  StreamView stream_;
  std::vector<std::int32_t> table_;
  Tensor input_, weight_;
  Tensor device_input_, device_weight_;
  std::map<std::pair<std::int32_t, int>, TilePair> tiles_;
};

}   // namespace pumice::test
