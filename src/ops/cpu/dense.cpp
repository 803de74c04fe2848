// Scatter into, gather from and search of dense arrays.
#include "ops/cpu/dense.hpp"

#include <atomic>
#include <type_traits>
#include <vector>

#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

// Rows a task handles channel by channel: neighbours in key order share cache lines of one
// channel's plane, and 256 rows of 64 channels are still in L2 when the last channel is reached.
constexpr std::int64_t kBlockRows = 256;

/// Calls body with a zero of the unsigned type that is as wide as an element: these moves look at
/// bits only.
template <class Body> void dispatch_width(DType type, const Body& body) {
  switch (size_of(type)) {
    case 8: return body(std::uint64_t{});
    case 4: return body(std::uint32_t{});
    case 2: return body(std::uint16_t{});
    default: return body(std::uint8_t{});
  }
}

/// Marks the cells of one batch item in which some channel is not zero.
template <class T>
void mark_nonzero(const T* item, std::int64_t channels, std::int64_t volume, std::int64_t begin,
                  std::int64_t end, std::uint8_t* marks) {
  std::fill(marks, marks + (end - begin), std::uint8_t{0});
  for (std::int64_t c = 0; c < channels; ++c) {
    const T* const plane = item + c * volume;
    for (std::int64_t cell = begin; cell < end; ++cell) {
      marks[cell - begin] |= static_cast<std::uint8_t>(widen(plane[cell]) != 0);
    }
  }
}

}   // namespace

DensePlaces places(const CoordinateSet& set, const DenseLayout& layout) {
  const int dimension = set.dimension();
  const auto* const coordinates = set.coordinates().data<std::int32_t>();
  DensePlaces result{Buffer<std::int64_t>(set.size()), set.size()};
  std::atomic<std::int64_t> outside{set.size()};
  parallel_for(set.size(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int32_t* const site = coordinates + row * (dimension + 1);
      std::int64_t element = site[0] * layout.batch_stride;
      bool inside = true;
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimension); ++axis) {
        const std::int64_t cell = static_cast<std::int64_t>(site[axis + 1]) - layout.grid.low[axis];
        inside = inside && cell >= 0 && cell < layout.grid.shape[axis];
        element += cell * layout.stride[axis];
      }
      result.element[row] = inside ? element : -1;
      if (!inside) {
        std::int64_t seen = outside.load();
        while (row < seen && !outside.compare_exchange_weak(seen, row)) {
        }
      }
    }
  });
  result.first_outside = outside.load();
  return result;
}

void place_rows(ConstTensorView features, const DensePlaces& places, std::int64_t channel_stride,
                TensorView dense) {
  const std::int64_t channels = features.extent(1);
  dispatch_width(features.dtype(), [&]<class Bits>(Bits) {
    const auto* const in = static_cast<const Bits*>(features.raw());
    auto* const out = static_cast<Bits*>(dense.raw());
    parallel_for(features.rows(), kBlockRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t place = places.element[row];
          if (place >= 0) out[place + c * channel_stride] = in[row * channels + c];
        }
      }
    });
  });
}

void pick_rows(ConstTensorView dense, const DensePlaces& places, std::int64_t channel_stride,
               TensorView features) {
  const std::int64_t channels = features.extent(1);
  dispatch_width(features.dtype(), [&]<class Bits>(Bits) {
    const auto* const in = static_cast<const Bits*>(dense.raw());
    auto* const out = static_cast<Bits*>(features.raw());
    parallel_for(features.rows(), kBlockRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t place = places.element[row];
          out[row * channels + c] = place >= 0 ? in[place + c * channel_stride] : Bits{0};
        }
      }
    });
  });
}

Buffer<std::int64_t> occupied_cells(ConstTensorView dense, ConstTensorView mask) {
  const std::int64_t channels = dense.extent(1);
  const std::int64_t cells =
      mask.defined() ? mask.elements() : (channels == 0 ? 0 : dense.elements() / channels);
  const std::int64_t volume = dense.extent(0) == 0 ? 0 : cells / dense.extent(0);
  if (cells == 0) return {};

  Buffer<std::uint8_t> found(mask.defined() ? 0 : cells);
  const std::uint8_t* const marks = mask.defined() ? mask.data<std::uint8_t>() : found.data();
  if (!mask.defined()) {
    dispatch_floating(dense.dtype(), "from_dense", [&]<class T>(T) {
      for (std::int64_t item = 0; item < dense.extent(0); ++item) {
        parallel_for(volume, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
          mark_nonzero(dense.data<T>() + item * channels * volume, channels, volume, begin, end,
                       found.data() + item * volume + begin);
        });
      }
    });
  }
  const std::int64_t chunks = (cells + kElementGrain - 1) / kElementGrain;
  std::vector<std::int64_t> begin_of(static_cast<std::size_t>(chunks) + 1, 0);
  parallel_for(cells, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t cell = begin; cell < end; ++cell)
      count += marks[cell] != 0;
    begin_of[static_cast<std::size_t>(begin / kElementGrain) + 1] = count;
  });
  for (std::size_t chunk = 1; chunk < begin_of.size(); ++chunk) {
    begin_of[chunk] += begin_of[chunk - 1];
  }
  Buffer<std::int64_t> occupied(begin_of.back());
  parallel_for(cells, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t next = begin_of[static_cast<std::size_t>(begin / kElementGrain)];
    for (std::int64_t cell = begin; cell < end; ++cell) {
      if (marks[cell] != 0) occupied[next++] = cell;
    }
  });
  return occupied;
}

}   // namespace pumice::cpu
