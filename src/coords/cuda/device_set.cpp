// Memory of a set on the device.
#include "coords/cuda/device_set.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/status.hpp"

namespace pumice::cuda {
namespace {

/// A load of at most one half, and always a free slot, where a search ends.
std::int64_t slots_for(std::int64_t blocks) {
  return static_cast<std::int64_t>(
      std::bit_ceil(std::max<std::uint64_t>(2 * static_cast<std::uint64_t>(blocks), 2)));
}

void check_can_wait_for_sites(StreamView stream, const char* what) {
  PUMICE_EXPECTS(!is_capturing(stream), what,
                 ": the number of its sites is read back from the device, which cannot be waited "
                 "for while a graph is recorded; make it before the recording begins");
}

}   // namespace

DeviceSet::DeviceSet(jit::KernelRunner& runner, const KeyLayout& layout, SetCapacity capacity,
                     bool has_order, const std::string& name, FillList& fill)
    : layout_(layout),
      capacity_(capacity),
      counts_(runner.make<std::int64_t>(2)),
      keys_(runner.make<std::uint64_t>(capacity.rows)),
      order_(runner.make<std::int32_t>(has_order ? capacity.rows : 0)),
      block_key_(runner.make<std::uint64_t>(capacity.blocks)),
      occupancy_(runner.make<std::uint64_t>(capacity.blocks)),
      base_rank_(runner.make<std::int32_t>(capacity.blocks)),
      slots_(runner.make<BlockSlot>(slots_for(capacity.blocks))),
      slot_rank_(runner.make<std::int32_t>(slots_.size())),
      row_site_(status_site(name + ": rows")),
      block_site_(status_site(name + ": blocks")) {
  PUMICE_ENSURES(capacity.rows < (std::int64_t{1} << 31) && capacity.blocks <= capacity.rows, name,
                 ": room for ", capacity.rows, " rows in ", capacity.blocks, " blocks");
  fill.add(slots_, static_cast<std::uint32_t>(kNoBlock));
}

CoordinateSetRef DeviceSet::ref() const {
  return {
      .layout = layout_,
      .rows = rows(),
      .blocks = blocks(),
      .keys = keys_.data(),
      .order = order_.data(),
      .block_key = block_key_.data(),
      .occupancy = occupancy_.data(),
      .base_rank = base_rank_.data(),
      .table = {slots_.data(), slot_rank_.data(), static_cast<std::uint32_t>(slots_.size() - 1)}};
}

Level DeviceSet::level(int shift) {
  return {.keys = keys_.data(),
          .block_key = block_key_.data(),
          .occupancy = occupancy_.data(),
          .base_rank = base_rank_.data(),
          .slots = slots_.data(),
          .slot_rank = slot_rank_.data(),
          .row_count = counts_.data(),
          .block_count = counts_.data() + 1,
          .row_capacity = capacity_.rows,
          .block_capacity = capacity_.blocks,
          .slot_mask = static_cast<std::uint32_t>(slots_.size() - 1),
          .shift = shift,
          .row_site = row_site_,
          .block_site = block_site_};
}

std::int64_t wait_for_sites(const std::int64_t* count, StreamView stream, const char* what) {
  check_can_wait_for_sites(stream, what);
  return copy_to_host(count, 1, stream).front();
}

std::int64_t wait_for_sites(DeviceSet& set, StreamView stream, const char* what) {
  check_can_wait_for_sites(stream, what);
  const std::vector<std::int64_t> counts =
      copy_to_host(static_cast<const std::int64_t*>(set.row_count()), 2, stream);
  set.note_counts(counts[0], counts[1]);
  return counts[0];
}

}   // namespace pumice::cuda
