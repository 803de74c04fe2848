// Shifts of a window.
#include "maps/cuda/device_window.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "maps/cuda/block_moves.hpp"

namespace pumice::cuda {
namespace {

template <class T> Buffer<T> upload(const jit::KernelRunner& runner, const std::vector<T>& values) {
  Buffer<T> buffer = runner.make<T>(static_cast<std::int64_t>(values.size()));
  copy_async(buffer.data(), runner.stream().device, values.data(), {}, buffer.bytes(),
             runner.stream());
  return buffer;
}

/// A table of more words than this costs more than it saves: 9³ offsets, 94 KB.
constexpr std::int64_t kMostTableOffsets = 729;

}   // namespace

DeviceWindow::DeviceWindow(jit::KernelRunner& runner, const KernelWindow& window)
    : window_(window), volume_(window.volume()) {
  validate(window);
  const auto dimension = static_cast<std::size_t>(window.dimension);
  std::vector<std::int32_t> shifts;
  shifts.reserve(static_cast<std::size_t>(volume_) * dimension);
  low_.fill(std::numeric_limits<std::int64_t>::max());
  high_.fill(std::numeric_limits<std::int64_t>::min());
  for (const Axes& offset : window.offsets()) {
    for (std::size_t at = 0; at < dimension; ++at) {
      const std::int64_t shift =
          std::int64_t{offset[at]} * window.dilation[at] - window.padding[at];
      PUMICE_EXPECTS(shift >= std::numeric_limits<std::int32_t>::min() &&
                         shift <= std::numeric_limits<std::int32_t>::max(),
                     "padding[", at, "] = ", window.padding[at], ": an offset would lead ", shift,
                     " cells away; the most is 2147483647");
      shifts.push_back(static_cast<std::int32_t>(shift));
      low_[at] = std::min(low_[at], shift);
      high_[at] = std::max(high_[at], shift);
    }
  }
  shift_ = upload(runner, shifts);
  bool is_short = volume_ <= kMostTableOffsets;
  for (int axis = 0; axis < window.dimension; ++axis) {
    const std::int64_t extent = std::int64_t{1} << block_axis_bits(window.dimension, axis);
    is_short = is_short && low(axis) >= -extent && high(axis) <= extent;
  }
  if (!is_short || !has_stride(1)) return;
  for (const Reach reach : {Reach::out_to_in, Reach::in_to_out}) {
    const auto at = static_cast<std::size_t>(reach);
    const BlockMoves moves =
        make_block_moves(window.dimension, shifts, reach == Reach::out_to_in ? 1 : -1);
    cell_move_[at] = upload(runner, moves.cell_move);
    needed_by_[at] = upload(runner, moves.needed_by);
  }
}

bool DeviceWindow::has_stride(std::int32_t stride) const {
  return std::all_of(window_.stride.begin(), window_.stride.begin() + window_.dimension,
                     [stride](std::int32_t mine) { return mine == stride; });
}

WindowRef DeviceWindow::ref(bool by_block, Reach reach) const {
  WindowRef result{.shift = shift_.data(), .volume = static_cast<std::int32_t>(volume_)};
  if (by_block) {
    result.cell_move = cell_move_[static_cast<std::size_t>(reach)].data();
    result.needed_by = needed_by_[static_cast<std::size_t>(reach)].data();
  }
  std::copy(window_.stride.begin(), window_.stride.end(), result.stride);
  return result;
}

}   // namespace pumice::cuda
