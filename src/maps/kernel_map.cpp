// The owner of a kernel map's pairs and the views of it.
#include <pumice/maps/kernel_map.hpp>

#include <utility>

namespace pumice {
namespace {

std::span<const std::int32_t> order_of(const CoordinateSet& set) {
  if (set.in_key_order()) return {};
  return {set.index().order, static_cast<std::size_t>(set.size())};
}

}  // namespace

KernelMapView transposed(const KernelMapView& map) {
  KernelMapView result = map;
  std::swap(result.in_rows, result.out_rows);
  std::swap(result.in, result.out);
  std::swap(result.in_order, result.out_order);
  std::swap(result.sorted_by_in, result.sorted_by_out);
  return result;
}

KernelMap::KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                     std::vector<std::int64_t> offset_begin, Buffer<std::int32_t> in_rows,
                     Buffer<std::int32_t> out_rows, bool sorted_by_out, bool sorted_by_in,
                     bool has_identity_offset)
    : window_(std::move(window)),
      in_(std::move(in)),
      out_(std::move(out)),
      offset_begin_(std::move(offset_begin)),
      in_rows_(std::move(in_rows)),
      out_rows_(std::move(out_rows)),
      sorted_by_out_(sorted_by_out),
      sorted_by_in_(sorted_by_in),
      has_identity_offset_(has_identity_offset) {
  PUMICE_ENSURES(in_ != nullptr && out_ != nullptr, "a kernel map without coordinates");
  PUMICE_ENSURES(offset_begin_.size() == static_cast<std::size_t>(window_.volume()) + 1,
                 offset_begin_.size(), " bounds for ", window_.volume(), " offsets");
  PUMICE_ENSURES(offset_begin_.back() == in_rows_.size() && in_rows_.size() == out_rows_.size(),
                 in_rows_.size(), " input rows and ", out_rows_.size(), " output rows for ",
                 offset_begin_.back(), " pairs");
}

KernelMapView KernelMap::view() const {
  return {.offsets = static_cast<std::int64_t>(offset_begin_.size()) - 1,
          .in_rows = in_->size(),
          .out_rows = out_->size(),
          .offset_begin = offset_begin_,
          .in = in_rows_.span(),
          .out = out_rows_.span(),
          .out_order = order_of(*out_),
          .in_order = order_of(*in_),
          .sorted_by_out = sorted_by_out_,
          .sorted_by_in = sorted_by_in_,
          .has_identity_offset = has_identity_offset_};
}

}  // namespace pumice
