// Gather-GEMM-scatter, a tile of outputs at a time.
//
//   rows of an offset's pairs ──gather──▶ operand ──dense GEMM──▶ product ──scatter-add──▶ sums
//
// Cutting by outputs lets threads work without locks and keeps the order of additions. Where pairs
// are consecutive rows on both sides, as at the centre of a submanifold kernel, the GEMM reads the
// input and adds to the sums in place.
#include <pumice/kernels/gather_gemm_scatter.hpp>

#include <algorithm>

#include <pumice/core/parallel.hpp>
#include <pumice/kernels/dense_gemm.hpp>

#include "kernels/cpu/epilogue_rows.hpp"
#include "kernels/cpu/scratch.hpp"

namespace pumice {
namespace {

/// Pairs gathered at once: 1024 rows of 128 floats are 512 KiB, a second-level cache.
constexpr std::int64_t kChunk = 1024;

/// The weights as the GEMM wants them: [K, rows, columns] of one group at `group · group_step`.
template <class T> struct Matrices {
  Tensor owned;   // undefined when the caller's own array serves
  const T* data = nullptr;
  std::int64_t offset_step = 0;
  std::int64_t group_step = 0;
  std::int64_t pitch = 0;
};

template <class T> Matrices<T> matrices(const GatherGemmScatterArguments& arguments) {
  const auto& weight = arguments.weight;
  const std::int64_t offsets = weight.extent(0), rows = weight.extent(1),
                     columns = weight.extent(2);
  const std::int64_t groups = arguments.groups;
  if (dtype_of<T> == weight.dtype() && !arguments.transpose_weight) {
    return {{}, weight.data<T>(), rows * columns, columns / groups, columns};
  }
  Tensor owned(Shape{offsets, groups, rows, columns / groups}, dtype_of<T>);
  T* to = owned.data<T>();
  const std::int64_t group_columns = columns / groups;
  dispatch_floating(weight.dtype(), "weight", [&](auto zero) {
    using S = decltype(zero);
    if constexpr (std::is_same_v<compute_t<S>, T>) {
      const S* from = weight.data<S>();
      parallel_for(offsets * groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const S* first = from + i / groups * rows * columns + i % groups * group_columns;
          T* matrix = to + i * rows * group_columns;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < group_columns; ++c) {
              const T value = widen(first[r * columns + c]);
              matrix[arguments.transpose_weight ? c * rows + r : r * group_columns + c] = value;
            }
          }
        }
      });
    }
  });
  const std::int64_t size = rows * group_columns;
  return {std::move(owned), to, groups * size, size,
          arguments.transpose_weight ? rows : group_columns};
}

struct Sizes {
  std::int64_t groups, in_channels, out_channels;   // channels of all groups
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
};

bool consecutive(const std::int32_t* rows, std::int64_t count) {
  if (rows[0] < 0) return false;
  for (std::int64_t i = 1; i < count; ++i) {
    if (rows[i] != rows[0] + i) return false;
  }
  return true;
}

template <class T>
void multiply_pairs(const GatherGemmScatterArguments& arguments, const Matrices<T>& weight,
                    const Sizes& sizes, std::int64_t offset, std::int64_t begin, std::int64_t count,
                    T* sums) {
  const auto& tiles = arguments.tiles;
  const auto& input = arguments.input;
  const auto& kernels = cpu::micro_kernels(input.dtype());
  const std::int32_t* in = tiles.in + begin;
  const std::int32_t* local_out = tiles.local_out + begin;
  const auto* raw = static_cast<const std::byte*>(input.raw());
  const std::int64_t pitch = sizes.in_channels * static_cast<std::int64_t>(size_of(input.dtype()));

  const T* operand = nullptr;
  if (input.dtype() == dtype_of<T> && consecutive(in, count)) {
    operand = reinterpret_cast<const T*>(raw + in[0] * pitch);
  } else {
    T* gathered = cpu::thread_scratch<T>(cpu::ScratchUse::rows, count * sizes.in_channels);
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = gathered + i * sizes.in_channels;
      if (in[i] < 0) {
        std::fill_n(row, sizes.in_channels, T{});
      } else {
        kernels.widen(raw + in[i] * pitch, row, sizes.in_channels);
      }
    }
    operand = gathered;
  }

  const bool add_in_place = consecutive(local_out, count);
  T* product = add_in_place
                   ? sums + local_out[0] * sizes.out_channels
                   : cpu::thread_scratch<T>(cpu::ScratchUse::product, count * sizes.out_channels);
  for (std::int64_t g = 0; g < sizes.groups; ++g) {
    dense_gemm(count, sizes.group_out(), sizes.group_in(), operand + g * sizes.group_in(),
               sizes.in_channels, weight.data + offset * weight.offset_step + g * weight.group_step,
               weight.pitch, product + g * sizes.group_out(), sizes.out_channels, add_in_place);
  }
  if (add_in_place) return;
  for (std::int64_t i = 0; i < count; ++i) {
    T* to = sums + local_out[i] * sizes.out_channels;
    const T* from = product + i * sizes.out_channels;
    for (std::int64_t c = 0; c < sizes.out_channels; ++c)
      to[c] += from[c];
  }
}

template <class T> void run(const GatherGemmScatterArguments& arguments, const Sizes& sizes) {
  const auto& tiles = arguments.tiles;
  const Matrices<T> weight = matrices<T>(arguments);
  const cpu::EpilogueRows epilogue(cpu::micro_kernels(arguments.input.dtype()), arguments.epilogue,
                                   arguments.output, {}, tiles.out_order, sizes.out_channels, 1,
                                   sizes.out_channels);
  parallel_for(tiles.tiles, 1, [&](std::int64_t first_tile, std::int64_t last_tile) {
    for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
      const std::int64_t first = tile * tiles.tile_rows;
      const std::int64_t rows = std::min(tiles.tile_rows, tiles.out_rows - first);
      T* sums = cpu::thread_scratch<T>(cpu::ScratchUse::sums, rows * sizes.out_channels);
      epilogue.start(first, rows, sums, sizes.out_channels);
      const std::int64_t* begin = tiles.begin + tile * tiles.offsets;
      for (std::int64_t k = 0; k < tiles.offsets; ++k) {
        for (std::int64_t p = begin[k]; p < begin[k + 1]; p += kChunk) {
          multiply_pairs(arguments, weight, sizes, k, p, std::min(kChunk, begin[k + 1] - p), sums);
        }
      }
      epilogue.finish(first, rows, sums, sizes.out_channels);
    }
  });
}

Sizes checked_sizes(const GatherGemmScatterArguments& arguments) {
  const auto& weight = arguments.weight;
  const std::int64_t groups = arguments.groups;
  PUMICE_EXPECTS(weight.rank() == 3, "weight has shape ", to_string(weight.shape()),
                 "; a convolution takes [offsets, in channels / groups, out channels]");
  PUMICE_EXPECTS(groups >= 1 && weight.extent(2) % groups == 0, "groups = ", groups,
                 " does not divide the weight's ", weight.extent(2), " output channels");
  Sizes sizes{groups, weight.extent(1) * groups, weight.extent(2)};
  if (arguments.transpose_weight) std::swap(sizes.in_channels, sizes.out_channels);
  const auto& input = arguments.input;
  PUMICE_EXPECTS(input.rank() == 2 && input.extent(1) == sizes.in_channels, "features of shape ",
                 to_string(input.shape()), " meet a weight of ", sizes.in_channels,
                 " input channels; give [rows, ", sizes.in_channels, "]");
  PUMICE_EXPECTS(input.dtype() == weight.dtype(), "features are ", name_of(input.dtype()),
                 ", weights ", name_of(weight.dtype()), "; convert one of them");
  PUMICE_EXPECTS(arguments.tiles.offsets == weight.extent(0), "weight has ", weight.extent(0),
                 " offsets, the kernel map ", arguments.tiles.offsets,
                 "; both must come from one kernel size");
  return sizes;
}

}   // namespace

void gather_gemm_scatter(const GatherGemmScatterArguments& arguments) {
  const Sizes sizes = checked_sizes(arguments);
  if (arguments.input.dtype() == DType::f64) {
    run<double>(arguments, sizes);
  } else {
    run<float>(arguments, sizes);
  }
}

}   // namespace pumice
