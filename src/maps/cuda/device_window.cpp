// Shifts of a window.
#include "maps/cuda/device_window.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "coords/cuda/upload.hpp"
#include "maps/cuda/block_moves.hpp"

namespace pumice::cuda {
namespace {

/// A table of more offsets than this costs more than it saves: 9³ offsets, 94 KB.
constexpr std::int64_t kMostTableOffsets = 729;
constexpr std::int64_t kWordOffsets = 32;

/// What is kept for the whole process: networks have a handful of windows, of 13 KB at 3³ offsets.
constexpr std::size_t kMostKept = 128;
constexpr std::size_t kMostKeptBytes = 64 * 1024;

struct Kept {
  std::shared_ptr<const DeviceWindow> window;
  StreamView stream;   // on which it was copied
  Event ready;
};

struct KeptWindows {
  std::mutex mutex;
  std::deque<Kept> all;
};

KeptWindows& kept_windows() {
  static auto& kept = *new KeptWindows;   // never destroyed: the driver may be gone before
  return kept;
}

}   // namespace

/// One after the other, as kernels read them: in pieces of 16 bytes.
struct DeviceWindow::Tables {
  std::vector<std::byte> bytes;

  template <class T> Place add(const std::vector<T>& values) {
    constexpr std::size_t kPiece = 16;
    const std::size_t place = (bytes.size() + kPiece - 1) / kPiece * kPiece;
    bytes.resize(place + values.size() * sizeof(T));
    std::memcpy(bytes.data() + place, values.data(), values.size() * sizeof(T));
    return static_cast<Place>(place);
  }
  /// All of them, with nothing read behind the last.
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> result((bytes.size() + 3) / 4);
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
};

std::shared_ptr<const DeviceWindow> DeviceWindow::on(StreamView stream,
                                                     const KernelWindow& window) {
  if (is_capturing(stream)) {
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    return std::make_shared<DeviceWindow>(runner, window);
  }
  KeptWindows& kept = kept_windows();
  const std::lock_guard lock(kept.mutex);
  for (const Kept& one : kept.all) {
    if (one.stream.device != stream.device || !(one.window->window() == window)) continue;
    if (!(one.stream == stream)) order_after(stream, one.ready);
    return one.window;
  }
  // Not from a framework's memory, nor from that of a plan: it stays.
  jit::DeviceRunner runner(stream, cuda_allocator(stream.device.index));
  auto made = std::make_shared<const DeviceWindow>(runner, window);
  if (kept.all.size() < kMostKept && made->tables_.bytes() <= kMostKeptBytes) {
    Event ready(stream.device);
    ready.record(stream);
    kept.all.push_back({made, stream, std::move(ready)});
  }
  return made;
}

DeviceWindow::DeviceWindow(jit::KernelRunner& runner, const KernelWindow& window)
    : window_(window), map_name_("map of " + to_string(window)), volume_(window.volume()) {
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
  Tables tables;
  shift_ = tables.add(shifts);
  if (volume_ <= kMostTableOffsets && has_stride(1)) {
    level_moves_ = {moves_of(tables, window.dimension, shifts, 1, 1),
                    moves_of(tables, window.dimension, shifts, 1, -1)};
  }
  if (volume_ <= kMostTableOffsets && has_stride(2))
    finer_moves_ = moves_of(tables, window.dimension, shifts, 2, 1);
  if (volume_ <= kWordOffsets && has_stride(2)) sort_by_parity(tables, shifts);
  if (has_stride(2)) name_children(tables, shifts);
  const std::vector<std::uint32_t> words = tables.words();
  tables_ = runner.make<std::uint32_t>(static_cast<std::int64_t>(words.size()));
  upload(runner, tables_.data(), words);
}

DeviceWindow::Moves DeviceWindow::moves_of(Tables& tables, int dimension,
                                           const std::vector<std::int32_t>& shifts, int scale,
                                           int sign) {
  const std::optional<BlockMoves> moves = make_block_moves(dimension, shifts, scale, sign);
  if (!moves) return {};
  return {tables.add(moves->cell_move), tables.add(moves->needed_by), moves->first_step};
}

void DeviceWindow::name_children(Tables& tables, const std::vector<std::int32_t>& shifts) {
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
  of_child_ = tables.add(of_child);
}

void DeviceWindow::sort_by_parity(Tables& tables, const std::vector<std::int32_t>& shifts) {
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
  of_parity_ = tables.add(table);
  parity_lanes_ = static_cast<std::int32_t>(std::bit_ceil(most));
}

bool DeviceWindow::has_stride(std::int32_t stride) const {
  return std::all_of(window_.stride.begin(), window_.stride.begin() + window_.dimension,
                     [stride](std::int32_t mine) { return mine == stride; });
}

WindowRef DeviceWindow::ref() const {
  WindowRef result{.shift = at<std::int32_t>(shift_), .volume = static_cast<std::int32_t>(volume_)};
  std::copy(window_.stride.begin(), window_.stride.end(), result.stride);
  return result;
}

WindowRef DeviceWindow::ref(KeyRelation keys, Reach reach) const {
  WindowRef result = ref();
  if (keys == KeyRelation::in_is_finer && of_child_ != kNone) {
    result.of_child = at<std::uint8_t>(of_child_);
    return result;
  }
  const Moves* const moves = keys == KeyRelation::same
                                 ? &level_moves_[static_cast<std::size_t>(reach)]
                             : keys == KeyRelation::in_is_finer ? &finer_moves_
                                                                : nullptr;
  if (moves != nullptr && moves->cell_move != kNone) {
    result.cell_move = at<std::uint16_t>(moves->cell_move);
    result.needed_by = at<std::uint64_t>(moves->needed_by);
    std::copy(moves->first_step.begin(), moves->first_step.end(), result.first_step);
  }
  if (keys == KeyRelation::out_is_finer && of_parity_ != kNone) {
    result.of_parity = at<std::uint8_t>(of_parity_);
    result.parity_lanes = parity_lanes_;
  }
  return result;
}

}   // namespace pumice::cuda
