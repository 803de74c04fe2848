// The owner of a kernel map's pairs and the views of it.
#include <pumice/maps/kernel_map.hpp>

#include <utility>

#include "maps/cuda/map_structures.hpp"

namespace pumice {
namespace {

std::span<const std::int32_t> order_of(const CoordinateSet& set) {
  if (set.in_key_order()) return {};
  return {set.index().order, static_cast<std::size_t>(set.size())};
}

}   // namespace

KernelMapView transposed(const KernelMapView& map) {
  KernelMapView result = map;
  std::swap(result.in_rows, result.out_rows);
  std::swap(result.in, result.out);
  std::swap(result.in_order, result.out_order);
  std::swap(result.sorted_by_in, result.sorted_by_out);
  result.is_transposed = !map.is_transposed;
  return result;
}

KernelMap::KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                     KernelPairs pairs, bool has_identity_offset)
    : window_(std::move(window)),
      in_(std::move(in)),
      out_(std::move(out)),
      pairs_(std::move(pairs)),
      has_identity_offset_(has_identity_offset) {
  PUMICE_ENSURES(in_ != nullptr && out_ != nullptr, "a kernel map without coordinates");
  PUMICE_ENSURES(pairs_.offset_begin.size() == window_.volume() + 1, pairs_.offset_begin.size(),
                 " bounds for ", window_.volume(), " offsets");
  PUMICE_ENSURES(
      pairs_.in.size() == pairs_.count.capacity() && pairs_.out.size() == pairs_.count.capacity(),
      pairs_.in.size(), " input rows and ", pairs_.out.size(),
      " output rows where there is room for ", pairs_.count.capacity(), " pairs");
  if (!pairs_.count.host_knows()) return;
  const std::int64_t end = pairs_.offset_begin[window_.volume()];
  PUMICE_ENSURES(end == pairs_.count.host(), pairs_.count.host(),
                 " pairs, of which the offsets name ", end);
}

KernelMap::KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                     bool has_identity_offset)
    : window_(std::move(window)),
      in_(std::move(in)),
      out_(std::move(out)),
      has_identity_offset_(has_identity_offset) {}

KernelMapPtr KernelMap::on_device(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                                  bool outputs_are_finer, bool has_identity_offset) {
  return on_device(std::move(window), std::move(in), std::move(out),
                   std::make_shared<cuda::MapStructures>(outputs_are_finer), has_identity_offset);
}

KernelMapPtr KernelMap::on_device(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                                  std::shared_ptr<cuda::MapStructures> structures,
                                  bool has_identity_offset) {
  PUMICE_ENSURES(in != nullptr && out != nullptr && in->device() == out->device(),
                 "a kernel map between sets on two devices");
  auto map = std::shared_ptr<KernelMap>(
      new KernelMap(std::move(window), std::move(in), std::move(out), has_identity_offset));
  map->structures_ = std::move(structures);
  return map;
}

KernelMapView KernelMap::view() const {
  if (structures_ != nullptr) {
    return {.offsets = window_.volume(),
            .in_rows = in_->rows().capacity(),
            .out_rows = out_->rows().capacity(),
            .has_identity_offset = has_identity_offset_,
            .device = device(),
            .map = this};
  }
  const auto count = static_cast<std::size_t>(pairs());
  return {.offsets = pairs_.offset_begin.size() - 1,
          .in_rows = in_->size(),
          .out_rows = out_->size(),
          .offset_begin = pairs_.offset_begin.span(),
          .in = pairs_.in.span().first(count),
          .out = pairs_.out.span().first(count),
          .out_order = order_of(*out_),
          .in_order = order_of(*in_),
          .sorted_by_out = pairs_.sorted_by_out,
          .sorted_by_in = pairs_.sorted_by_in,
          .has_identity_offset = has_identity_offset_,
          .map = this};
}

}   // namespace pumice
