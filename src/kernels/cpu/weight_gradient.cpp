// The weight gradient on the CPU: the register tile of the forward pass, turned by ninety degrees.
//
//   input, transposed: row c  = channel c of the block's pairs      "rows" of the tile
//   grad, in panels:   row p  = pair p's gradient, 16 columns       "channels" of the tile
//   sums:              row c  = dW[k][c]
//
// Pairs of an offset are cut into chunks, each summed by one thread into its own matrix; the
// matrices are added in the order of the chunks.
#include <pumice/kernels/weight_gradient.hpp>

#include <algorithm>
#include <vector>

#include <pumice/core/parallel.hpp>

#include "kernels/cpu/block_product.hpp"
#include "kernels/cpu/scratch.hpp"

namespace pumice {
namespace {

/// Pairs packed at a time: a panel of 16 columns is 8 KiB, 128 rows of 256 floats are 128 KiB.
constexpr std::int64_t kBlock = 128;
/// Pairs transposed at a time: one cache line of floats.
constexpr std::int64_t kTranspose = 16;
/// Chunks are at least this long, so that adding up their matrices costs little beside making them,
/// and there are about kMostChunks of them, so that the matrices stay small together.
constexpr std::int64_t kShortestChunk = 2048;
constexpr std::int64_t kMostChunks = 256;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

struct Chunk {
  std::int64_t offset, begin, end;
};

/// Depends on the relation alone, never on threads.
std::vector<Chunk> cut(const RelationView& relation) {
  const std::int64_t length =
      std::max(kShortestChunk, round_up(relation.pairs() / kMostChunks, kBlock));
  std::vector<Chunk> chunks;
  for (std::int64_t k = 0; k < relation.offsets; ++k) {
    const std::int64_t first = relation.offset_begin[static_cast<std::size_t>(k)];
    const std::int64_t last = first + relation.pairs_of(k);
    for (std::int64_t p = first; p < last; p += length) {
      chunks.push_back({k, p, std::min(p + length, last)});
    }
  }
  return chunks;
}

struct Job {
  const cpu::MicroKernels* kernels;
  const std::byte* input;
  const std::byte* grad;
  const std::int32_t* in;
  const std::int32_t* out;
  std::int64_t storage_bytes;
  std::int64_t groups;
  std::int64_t in_channels, out_channels;   // of all groups
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  bool depthwise() const { return groups > 1 && group_in() == 1 && group_out() == 1; }
  /// Sums of one group are [group_in, sums_pitch]; depthwise sums are [channels].
  std::int64_t sums_pitch() const { return round_up(group_out(), kernels->lanes); }
  std::int64_t matrix() const {
    return depthwise() ? in_channels : groups * group_in() * sums_pitch();
  }
  const std::byte* input_row(std::int64_t pair) const {
    return input + in[pair] * in_channels * storage_bytes;
  }
  const std::byte* grad_row(std::int64_t pair) const {
    return grad + out[pair] * out_channels * storage_bytes;
  }
};

/// to[c][p] = channel c of pair begin + p. `pitch` is odd in cache lines, so that the lines of one
/// store burst fall into different sets.
template <class T>
void transpose_input(const Job& job, std::int64_t begin, std::int64_t count, T* widened, T* to,
                     std::int64_t pitch) {
  for (std::int64_t first = 0; first < count; first += kTranspose) {
    const std::int64_t some = std::min(kTranspose, count - first);
    const T* rows[kTranspose];
    for (std::int64_t p = 0; p < some; ++p) {
      const std::byte* row = job.input_row(begin + first + p);
      if (!job.kernels->reads_storage) {
        job.kernels->widen(row, widened + p * job.in_channels, job.in_channels);
        row = reinterpret_cast<const std::byte*>(widened + p * job.in_channels);
      }
      rows[p] = reinterpret_cast<const T*>(row);
    }
    for (std::int64_t c = 0; c < job.in_channels; ++c) {
      T* line = to + c * pitch + first;
      for (std::int64_t p = 0; p < some; ++p)
        line[p] = rows[p][c];
    }
  }
}

/// to: for each group [columns / panel][count][panel], zeros beyond the columns.
template <class T> void pack_grad(const Job& job, std::int64_t begin, std::int64_t count, T* to) {
  const std::int64_t panel = job.kernels->panel();
  const std::int64_t columns = job.group_out();
  const std::int64_t group_elements = round_up(columns, panel) * count;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::byte* row = job.grad_row(begin + p);
    for (std::int64_t g = 0; g < job.groups; ++g) {
      for (std::int64_t j = 0; j < columns; j += panel) {
        T* line = to + g * group_elements + j * count + p * panel;
        const std::int64_t some = std::min(panel, columns - j);
        job.kernels->widen(row + (g * columns + j) * job.storage_bytes, line, some);
        std::fill(line + some, line + panel, T{});
      }
    }
  }
}

template <class T> void sum_block(const Job& job, std::int64_t begin, std::int64_t count, T* sums) {
  const std::int64_t panel = job.kernels->panel();
  constexpr std::int64_t kPitch = kBlock + kTranspose;
  T* transposed =
      cpu::thread_scratch<T>(cpu::ScratchUse::rows, job.in_channels * (kPitch + kTranspose));
  T* widened = transposed + job.in_channels * kPitch;
  transpose_input(job, begin, count, widened, transposed, kPitch);
  const std::int64_t group_elements = round_up(job.group_out(), panel) * count;
  T* packed = cpu::thread_scratch<T>(cpu::ScratchUse::product, job.groups * group_elements);
  pack_grad(job, begin, count, packed);

  constexpr std::int64_t kRows = 96;
  const void* input[kRows];
  void* to[kRows];
  for (std::int64_t g = 0; g < job.groups; ++g) {
    const cpu::Panels panels{reinterpret_cast<const std::byte*>(packed + g * group_elements),
                             static_cast<std::int64_t>(sizeof(T)), count, job.group_out()};
    for (std::int64_t first = 0; first < job.group_in(); first += kRows) {
      const std::int64_t rows = std::min(kRows, job.group_in() - first);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t c = g * job.group_in() + first + r;
        input[r] = transposed + c * kPitch;
        to[r] = sums + c * job.sums_pitch();
      }
      cpu::multiply_block(*job.kernels, {input, to, rows, 0, 0}, panels);
    }
  }
}

template <class T> void sum_chunk(const Job& job, const Chunk& chunk, T* sums) {
  std::fill_n(sums, job.matrix(), T{});
  if (job.depthwise()) {
    T* grad = cpu::thread_scratch<T>(cpu::ScratchUse::rows, job.in_channels);
    for (std::int64_t p = chunk.begin; p < chunk.end; ++p) {
      job.kernels->widen(job.grad_row(p), grad, job.in_channels);
      job.kernels->add_product(job.input_row(p), grad, sums, job.in_channels);
    }
    return;
  }
  for (std::int64_t p = chunk.begin; p < chunk.end; p += kBlock) {
    sum_block(job, p, std::min(kBlock, chunk.end - p), sums);
  }
}

/// result[k] = Σ matrices of the chunks of offset k, rounded once.
template <class S, class T = compute_t<S>>
void add_up(const Job& job, const std::vector<Chunk>& chunks, const T* matrices,
            std::int64_t offsets, S* result) {
  std::vector<std::size_t> first(static_cast<std::size_t>(offsets) + 1, chunks.size());
  for (std::size_t i = chunks.size(); i-- > 0;)
    first[static_cast<std::size_t>(chunks[i].offset)] = i;
  for (auto k = static_cast<std::size_t>(offsets); k-- > 0;) {
    first[k] = std::min(first[k], first[k + 1]);
  }
  const std::int64_t rows = job.group_in();
  parallel_for(offsets * rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto k = static_cast<std::size_t>(i / rows);
      for (std::int64_t j = 0; j < job.out_channels; ++j) {
        const std::int64_t g = j / job.group_out();
        const std::int64_t at =
            job.depthwise() ? j : (g * rows + i % rows) * job.sums_pitch() + j % job.group_out();
        T sum{};
        for (std::size_t chunk = first[k]; chunk < first[k + 1]; ++chunk) {
          sum += matrices[static_cast<std::int64_t>(chunk) * job.matrix() + at];
        }
        result[i * job.out_channels + j] = narrow<S>(sum);
      }
    }
  });
}

}   // namespace

Tensor weight_gradient(ConstTensorView input, ConstTensorView grad_output,
                       const RelationView& relation, std::int64_t groups, const Place& place) {
  PUMICE_EXPECTS(input.rank() == 2 && grad_output.rank() == 2, "weight gradient of features ",
                 to_string(input.shape()), " and grad_output ", to_string(grad_output.shape()),
                 "; both must be [rows, channels]");
  PUMICE_EXPECTS(input.dtype() == grad_output.dtype(), "features are ", name_of(input.dtype()),
                 ", grad_output ", name_of(grad_output.dtype()), "; convert one of them");
  PUMICE_EXPECTS(input.rows() == relation.in_rows && grad_output.rows() == relation.out_rows,
                 "features of ", input.rows(), " rows and grad_output of ", grad_output.rows(),
                 " rows meet a relation from ", relation.in_rows, " to ", relation.out_rows,
                 " rows");
  const std::int64_t in_channels = input.extent(1), out_channels = grad_output.extent(1);
  PUMICE_EXPECTS(groups >= 1 && in_channels % groups == 0 && out_channels % groups == 0,
                 "groups = ", groups, " does not divide ", in_channels, " input and ", out_channels,
                 " output channels");
  const Job job{&cpu::micro_kernels(input.dtype()),
                static_cast<const std::byte*>(input.raw()),
                static_cast<const std::byte*>(grad_output.raw()),
                relation.in.data(),
                relation.out.data(),
                static_cast<std::int64_t>(size_of(input.dtype())),
                groups,
                in_channels,
                out_channels};
  const std::vector<Chunk> chunks = cut(relation);
  Tensor result = place.make({relation.offsets, in_channels / groups, out_channels}, input.dtype(),
                             input.stream());
  if (result.elements() == 0) return result;
  dispatch_floating(input.dtype(), "weight_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    const auto count = static_cast<std::int64_t>(chunks.size());
    Buffer<T> matrices(count * job.matrix());
    parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        sum_chunk(job, chunks[static_cast<std::size_t>(i)], matrices.data() + i * job.matrix());
      }
    });
    add_up(job, chunks, matrices.data(), relation.offsets, result.data<S>());
  });
  return result;
}

Tensor weight_gradient(ConstTensorView input, ConstTensorView grad_output, const KernelMapView& map,
                       std::int64_t groups, const Place& place) {
  check_lists(map, "weight_gradient");
  return weight_gradient(input, grad_output, relation_of(map), groups, place);
}

}   // namespace pumice
