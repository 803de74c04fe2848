// TileMMA on the CPU.
//
//   for each tile of outputs (in parallel)        sums: tile_rows × C_out, in the second-level
//   cache
//     for each offset, ascending
//       for each block of its pairs               input rows read where they lie
//         for each panel of output channels       panel: C_in × 16, in the first-level cache
//           for each six pairs                    register tile, see micro_kernels.hpp
//     epilogue, row by row, into the output
//
// Against gather-GEMM-scatter this writes neither the gathered rows nor the products: memory sees
// each input row about once a tile and each output row once.
#include <pumice/kernels/tile_mma.hpp>

#include <algorithm>
#include <cstring>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/block_product.hpp"
#include "kernels/cpu/epilogue_rows.hpp"
#include "kernels/cpu/scratch.hpp"

namespace pumice {
namespace {

using cpu::MicroKernels;

/// Pairs whose addresses (and, for 16-bit types, widened rows) are prepared together. A multiple of
/// six; 96 rows of 96 floats are 36 KiB.
constexpr std::int64_t kPairBlock = 96;

/// The call, reduced to what the loops read.
struct Job {
  const MicroKernels* kernels = nullptr;
  const WeightPanels* weight = nullptr;
  RelationTilesView tiles;
  const std::byte* input = nullptr;
  std::int64_t input_pitch = 0;     // bytes of an input row
  std::int64_t storage_bytes = 0;   // of an element of it
  std::int64_t operand_bytes = 0;   // of an element that `multiply` reads
  std::int64_t in_channels = 0;     // of one group
  std::int64_t padded_in = 0;       // of one group, as `multiply` takes them
  std::int64_t out_channels = 0;    // of one group
  std::int64_t padded_out = 0;      // of one group, in whole vectors
  bool in_place = false;            // rows can be read where they lie
  cpu::EpilogueRows epilogue;
};

/// One block of pairs: where their operands are.
struct Block {
  const void* input[kPairBlock];
  void* sums[kPairBlock];
  std::int64_t count = 0;
};

void prefetch_rows(const Job& job, std::int64_t begin, std::int64_t end) {
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t row = job.tiles.in[p];
    if (row < 0) continue;
    const std::byte* from = job.input + row * job.input_pitch;
    for (std::int64_t byte = 0; byte < job.input_pitch; byte += 64) {
      __builtin_prefetch(from + byte, 0, 2);
    }
  }
}

/// Copies a row group by group to `to`, widened or padded as `multiply` wants it.
void prepare_row(const Job& job, const std::byte* row, std::byte* to) {
  for (std::int64_t g = 0; g < job.weight->groups(); ++g) {
    job.kernels->widen(row, to, job.in_channels);
    std::memset(to + job.in_channels * job.operand_bytes, 0,
                static_cast<std::size_t>((job.padded_in - job.in_channels) * job.operand_bytes));
    row += job.in_channels * job.storage_bytes;
    to += job.padded_in * job.operand_bytes;
  }
}

template <class T>
void collect(const Job& job, std::int64_t begin, std::int64_t end, T* sums, std::int64_t stride,
             Block& block) {
  const std::int64_t prepared_pitch = job.weight->groups() * job.padded_in * job.operand_bytes;
  std::byte* prepared = job.in_place ? nullptr
                                     : cpu::thread_scratch<std::byte>(cpu::ScratchUse::rows,
                                                                      kPairBlock * prepared_pitch);
  block.count = 0;
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t row = job.tiles.in[p];
    if (row < 0) continue;
    const std::byte* from = job.input + row * job.input_pitch;
    if (!job.in_place) {
      std::byte* to = prepared + block.count * prepared_pitch;
      prepare_row(job, from, to);
      from = to;
    }
    block.input[block.count] = from;
    block.sums[block.count] = sums + job.tiles.local_out[p] * stride;
    ++block.count;
  }
}

template <class T>
void multiply_offset(const Job& job, std::int64_t offset, std::int64_t begin, std::int64_t end,
                     std::int64_t tile_end, T* sums, std::int64_t stride) {
  const WeightPanels& weight = *job.weight;
  Block block;
  for (std::int64_t first = begin; first < end; first += kPairBlock) {
    const std::int64_t last = std::min(first + kPairBlock, end);
    collect(job, first, last, sums, stride, block);
    prefetch_rows(job, last, std::min(last + kPairBlock, tile_end));
    for (std::int64_t g = 0; g < weight.groups(); ++g) {
      const cpu::Panels panels{
          weight.data() + (g * weight.offsets() + offset) * weight.slice() * job.operand_bytes,
          job.operand_bytes, job.padded_in, job.out_channels};
      cpu::multiply_block(
          *job.kernels,
          {block.input, block.sums, block.count, g * job.padded_in, g * job.padded_out}, panels);
    }
  }
}

template <class T>
void multiply_depthwise(const Job& job, std::int64_t offset, std::int64_t begin, std::int64_t end,
                        T* sums, std::int64_t stride) {
  const std::int64_t channels = job.weight->in_channels();
  const T* weight = reinterpret_cast<const T*>(job.weight->data()) + offset * channels;
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t row = job.tiles.in[p];
    if (row < 0) continue;
    job.kernels->add_product(job.input + row * job.input_pitch, weight,
                             sums + job.tiles.local_out[p] * stride, channels);
  }
}

template <class T> void run_tile(const Job& job, std::int64_t tile) {
  const auto& tiles = job.tiles;
  // Depthwise sums lie channel by channel, others group by group, each in whole vectors.
  const bool depthwise = job.weight->depthwise();
  const std::int64_t stride = depthwise ? (job.weight->out_channels() + 15) / 16 * 16
                                        : job.weight->groups() * job.padded_out;
  const std::int64_t first = tile * tiles.tile_rows;
  const std::int64_t rows = std::min(tiles.tile_rows, tiles.out_rows - first);
  T* sums = cpu::thread_scratch<T>(cpu::ScratchUse::sums, rows * stride);
  job.epilogue.start(first, rows, sums, stride);
  const std::int64_t* begin = tiles.begin + tile * tiles.offsets;
  for (std::int64_t k = 0; k < tiles.offsets; ++k) {
    if (begin[k] == begin[k + 1]) continue;
    if (depthwise) {
      multiply_depthwise(job, k, begin[k], begin[k + 1], sums, stride);
    } else {
      multiply_offset(job, k, begin[k], begin[k + 1], begin[tiles.offsets], sums, stride);
    }
  }
  job.epilogue.finish(first, rows, sums, stride);
}

void check(const TileMmaArguments& arguments) {
  PUMICE_ENSURES(arguments.weight != nullptr && arguments.weight->defined(), "tile_mma");
  const WeightPanels& weight = *arguments.weight;
  const auto& input = arguments.input;
  PUMICE_EXPECTS(input.rank() == 2 && input.extent(1) == weight.in_channels(), "features of shape ",
                 to_string(input.shape()), " meet a weight of ", weight.in_channels(),
                 " input channels; give [rows, ", weight.in_channels(), "]");
  PUMICE_EXPECTS(input.dtype() == weight.dtype(), "features are ", name_of(input.dtype()),
                 ", weights ", name_of(weight.dtype()), "; convert one of them");
  PUMICE_EXPECTS(
      arguments.tiles.unique_rows,
      "tile_mma keeps the sums of several outputs in registers, and rows of this relation "
      "repeat within an offset; use gather_gemm_scatter");
  PUMICE_EXPECTS(arguments.tiles.offsets == weight.offsets(), "weight has ", weight.offsets(),
                 " offsets, the kernel map ", arguments.tiles.offsets,
                 "; both must come from one kernel size");
}

Job make_job(const TileMmaArguments& arguments) {
  const WeightPanels& weight = *arguments.weight;
  Job job;
  job.kernels =
      weight.bf16_pairs() ? cpu::bf16_pair_kernels() : &cpu::micro_kernels(weight.dtype());
  job.weight = &weight;
  job.tiles = arguments.tiles;
  job.input = static_cast<const std::byte*>(arguments.input.raw());
  job.storage_bytes = static_cast<std::int64_t>(size_of(weight.dtype()));
  job.operand_bytes =
      job.kernels->reads_storage ? job.storage_bytes : static_cast<std::int64_t>(sizeof(float));
  job.input_pitch = weight.in_channels() * job.storage_bytes;
  job.in_channels = weight.in_channels() / weight.groups();
  job.out_channels = weight.out_channels() / weight.groups();
  const std::int64_t multiple = job.kernels->channel_multiple;
  const std::int64_t lanes = job.kernels->lanes;
  job.padded_in = (job.in_channels + multiple - 1) / multiple * multiple;
  job.padded_out = (job.out_channels + lanes - 1) / lanes * lanes;
  job.in_place = job.kernels->reads_storage && job.padded_in == job.in_channels;
  const bool depthwise = weight.depthwise();
  job.epilogue = cpu::EpilogueRows(*job.kernels, arguments.epilogue, arguments.output,
                                   arguments.partial, arguments.tiles.out_order,
                                   weight.out_channels(), depthwise ? 1 : weight.groups(),
                                   depthwise ? weight.out_channels() : job.padded_out);
  return job;
}

}   // namespace

void tile_mma(const TileMmaArguments& arguments) {
  check(arguments);
  const Job job = make_job(arguments);
  parallel_for(job.tiles.tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      if (job.weight->dtype() == DType::f64) {
        run_tile<double>(job, tile);
      } else {
        run_tile<float>(job, tile);
      }
    }
  });
}

}   // namespace pumice
