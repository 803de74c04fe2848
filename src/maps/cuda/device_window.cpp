// Shifts of a window.
#include "maps/cuda/device_window.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

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

/// A table of more offsets than this costs more than it saves: 9³ offsets, 94 KB.
constexpr std::int64_t kMostTableOffsets = 729;
constexpr std::int64_t kWordOffsets = 32;

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
  if (volume_ <= kMostTableOffsets && has_stride(1)) {
    level_moves_ = {moves_of(runner, window.dimension, shifts, 1, 1),
                    moves_of(runner, window.dimension, shifts, 1, -1)};
  }
  if (volume_ <= kMostTableOffsets && has_stride(2))
    finer_moves_ = moves_of(runner, window.dimension, shifts, 2, 1);
  if (volume_ <= kWordOffsets && has_stride(2)) sort_by_parity(runner, shifts);
  if (has_stride(2)) name_children(runner, shifts);
}

DeviceWindow::Moves DeviceWindow::moves_of(jit::KernelRunner& runner, int dimension,
                                           const std::vector<std::int32_t>& shifts, int scale,
                                           int sign) {
  const std::optional<BlockMoves> moves = make_block_moves(dimension, shifts, scale, sign);
  if (!moves) return {};
  return {upload(runner, moves->cell_move), upload(runner, moves->needed_by), moves->first_step};
}

void DeviceWindow::name_children(const jit::KernelRunner& runner,
                                 const std::vector<std::int32_t>& shifts) {
  if (std::any_of(shifts.begin(), shifts.end(), [](std::int32_t at) { return at < 0 || at > 1; }))
    return;
  const auto dimension = static_cast<std::size_t>(window_.dimension);
  std::vector<std::uint8_t> of_child(std::size_t{1} << dimension, kNoOffset);
  for (std::size_t k = 0; k < static_cast<std::size_t>(volume_); ++k) {
    std::size_t child = 0;
    for (std::size_t axis = 0; axis < dimension; ++axis)
      child |= static_cast<std::size_t>(shifts[k * dimension + axis]) << axis;
    of_child[child] = static_cast<std::uint8_t>(k);
  }
  of_child_ = upload(runner, of_child);
}

void DeviceWindow::sort_by_parity(jit::KernelRunner& runner,
                                  const std::vector<std::int32_t>& shifts) {
  const auto dimension = static_cast<std::size_t>(window_.dimension);
  std::array<std::vector<std::uint8_t>, std::size_t{1} << kMaxDimension> offsets;
  for (std::size_t k = 0; k < static_cast<std::size_t>(volume_); ++k) {
    std::size_t parity = 0;
    for (std::size_t axis = 0; axis < dimension; ++axis)
      parity |= (shifts[k * dimension + axis] % 2 != 0 ? std::size_t{1} : 0) << axis;
    offsets[parity].push_back(static_cast<std::uint8_t>(k));
  }
  std::vector<std::uint8_t> table{0};
  std::vector<std::uint8_t> in_order;
  std::size_t most = 1;
  for (const auto& of_parity : offsets) {
    in_order.insert(in_order.end(), of_parity.begin(), of_parity.end());
    table.push_back(static_cast<std::uint8_t>(in_order.size()));
    most = std::max(most, of_parity.size());
  }
  table.insert(table.end(), in_order.begin(), in_order.end());
  of_parity_ = upload(runner, table);
  parity_lanes_ = static_cast<std::int32_t>(std::bit_ceil(most));
}

bool DeviceWindow::has_stride(std::int32_t stride) const {
  return std::all_of(window_.stride.begin(), window_.stride.begin() + window_.dimension,
                     [stride](std::int32_t mine) { return mine == stride; });
}

WindowRef DeviceWindow::ref() const {
  WindowRef result{.shift = shift_.data(), .volume = static_cast<std::int32_t>(volume_)};
  std::copy(window_.stride.begin(), window_.stride.end(), result.stride);
  return result;
}

WindowRef DeviceWindow::ref(KeyRelation keys, Reach reach) const {
  WindowRef result = ref();
  if (keys == KeyRelation::in_is_finer && of_child_.size() > 0) {
    result.of_child = of_child_.data();
    return result;
  }
  const Moves* const moves = keys == KeyRelation::same
                                 ? &level_moves_[static_cast<std::size_t>(reach)]
                             : keys == KeyRelation::in_is_finer ? &finer_moves_
                                                                : nullptr;
  if (moves != nullptr && moves->cell_move.size() > 0) {
    result.cell_move = moves->cell_move.data();
    result.needed_by = moves->needed_by.data();
    std::copy(moves->first_step.begin(), moves->first_step.end(), result.first_step);
  }
  if (keys == KeyRelation::out_is_finer && of_parity_.size() > 0) {
    result.of_parity = of_parity_.data();
    result.parity_lanes = parity_lanes_;
  }
  return result;
}

}   // namespace pumice::cuda
