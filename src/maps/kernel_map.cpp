// The owner of a kernel map's pairs and the views of it.
#include <pumice/maps/kernel_map.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>

#include "maps/other_side.hpp"

namespace pumice {
namespace {

std::span<const std::int32_t> order_of(const CoordinateSet& set) {
  if (set.in_key_order()) return {};
  return {set.index().order, static_cast<std::size_t>(set.size())};
}

void check_row(std::int32_t row, std::int64_t rows, const char* op, const char* list,
               std::int64_t element) {
  PUMICE_EXPECTS(row >= 0 && row < rows, op, ": ", list, "[", element, "] = ", row,
                 " is not a row; rows are 0 to ", rows - 1);
}

/// The rank of each row; empty where they are equal.
std::vector<std::int32_t> ranks_in(std::span<const std::int32_t> order, std::int64_t rows,
                                   const char* op, const char* list) {
  if (order.empty()) return {};
  PUMICE_EXPECTS(static_cast<std::int64_t>(order.size()) == rows, op, ": ", list, " holds ",
                 order.size(), " rows of ", rows, "; give each once, or none for their own order");
  std::vector<std::int32_t> rank(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    check_row(order[i], rows, op, list, static_cast<std::int64_t>(i));
    std::int32_t& place = rank[static_cast<std::size_t>(order[i])];
    PUMICE_EXPECTS(place < 0, op, ": ", list, "[", i, "] = ", order[i],
                   " is there twice; give each row once");
    place = static_cast<std::int32_t>(i);
  }
  return rank;
}

/// One side of the pairs: rows that there are, none twice within an offset, and ascending ranks
/// where `sorted` says so.
void check_side(const KernelMapView& map, std::span<const std::int32_t> list,
                std::span<const std::int32_t> order, std::int64_t rows, bool sorted, const char* op,
                const char* name) {
  const std::vector<std::int32_t> rank = ranks_in(order, rows, op, name);
  std::vector<std::int64_t> met_at(static_cast<std::size_t>(rows), -1);   // the last offset
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    std::int64_t last = -1;
    const std::int64_t end = map.offset_begin[static_cast<std::size_t>(k) + 1];
    for (std::int64_t i = end - map.pairs_of(k); i < end; ++i) {
      const std::int32_t row = list[static_cast<std::size_t>(i)];
      check_row(row, rows, op, name, i);
      const auto at = static_cast<std::size_t>(row);
      PUMICE_EXPECTS(met_at[at] != k, op, ": ", name, "[", i, "] = ", row,
                     " is there twice in offset ", k, "; within an offset a row has one partner");
      met_at[at] = k;
      const std::int64_t place = rank.empty() ? row : rank[at];
      PUMICE_EXPECTS(!sorted || place > last, op, ": ", name, "[", i, "] = ", row,
                     " does not ascend in offset ", k, ", which sorted_by_", name, " says");
      last = place;
    }
  }
}

void check_pairs(const KernelMapView& map, const char* op) {
  PUMICE_EXPECTS(map.device.kind == DeviceKind::cpu, op, ": a view of lists of one's own is on ",
                 to_string(map.device), "; on a device give the view of a KernelMap");
  PUMICE_EXPECTS(map.offsets >= 0 && map.in_rows >= 0 && map.out_rows >= 0 &&
                     static_cast<std::int64_t>(map.offset_begin.size()) == map.offsets + 1 &&
                     map.in.size() == map.out.size(),
                 op, ": ", map.offset_begin.size(), " bounds of ", map.offsets, " offsets, ",
                 map.in.size(), " input and ", map.out.size(),
                 " output rows; give one bound more than offsets, and pairs");
  std::int64_t before = 0;
  for (const std::int64_t bound : map.offset_begin) {
    PUMICE_EXPECTS(bound >= before && bound <= map.pairs(), op, ": offset_begin holds ", bound,
                   " after ", before, " where there are ", map.pairs(),
                   " pairs; bounds ascend from 0 to that number");
    before = bound;
  }
  PUMICE_EXPECTS(map.offset_begin.front() == 0 && before == map.pairs(), op,
                 ": offset_begin goes from ", map.offset_begin.front(), " to ", before,
                 "; it goes from 0 to the ", map.pairs(), " pairs");
  check_side(map, map.in, map.in_order, map.in_rows, map.sorted_by_in, op, "in");
  check_side(map, map.out, map.out_order, map.out_rows, map.sorted_by_out, op, "out");
  PUMICE_EXPECTS(!map.has_identity_offset || (map.in_rows == map.out_rows && map.offsets % 2 == 1 &&
                                              std::ranges::equal(map.in_order, map.out_order)),
                 op,
                 ": has_identity_offset is for an odd number of offsets between the same rows; "
                 "there are ",
                 map.offsets, " from ", map.in_rows, " to ", map.out_rows, " rows");
}

bool same_list(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
  return left.data() == right.data() && left.size() == right.size();
}

/// Whether nobody has put other lists or numbers in.
bool is_as_given(const KernelMapView& view) {
  if (view.map == nullptr) return false;
  const KernelMapView own = view.is_transposed ? transposed(view.map->view()) : view.map->view();
  return view.offsets == own.offsets && view.in_rows == own.in_rows &&
         view.out_rows == own.out_rows && view.offset_begin.data() == own.offset_begin.data() &&
         view.offset_begin.size() == own.offset_begin.size() && same_list(view.in, own.in) &&
         same_list(view.out, own.out) && same_list(view.in_order, own.in_order) &&
         same_list(view.out_order, own.out_order) && view.sorted_by_in == own.sorted_by_in &&
         view.sorted_by_out == own.sorted_by_out && view.device == own.device &&
         view.has_identity_offset == own.has_identity_offset;
}

}   // namespace

void check_lists(const KernelMapView& map, const char* op) {
  if (!is_as_given(map)) check_pairs(map, op);
}

KernelMapView transposed(const KernelMapView& map) {
  return other_side(map);
}

const CoordinateSet* in_sites(const KernelMapView& map) {
  return out_sites(transposed(map));
}

const CoordinateSet* out_sites(const KernelMapView& map) {
  if (map.map == nullptr) return nullptr;
  return (map.is_transposed ? map.map->in() : map.map->out()).get();
}

const RowCount* out_row_count(const KernelMapView& map) {
  const CoordinateSet* const sites = out_sites(map);
  return sites == nullptr ? nullptr : &sites->rows();
}

KernelMap::KernelMap(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                     KernelPairs pairs, bool has_identity_offset)
    : KernelMap(std::move(window), std::move(in), std::move(out), has_identity_offset) {
  set_pairs(std::move(pairs));
  check_pairs(view(), "KernelMap");
}

KernelMapPtr KernelMap::of_search(KernelWindow window, CoordinateSetPtr in, CoordinateSetPtr out,
                                  KernelPairs pairs, bool has_identity_offset) {
  auto map = std::shared_ptr<KernelMap>(
      new KernelMap(std::move(window), std::move(in), std::move(out), has_identity_offset));
  map->set_pairs(std::move(pairs));
  return map;
}

void KernelMap::set_pairs(KernelPairs pairs) {
  pairs_ = std::move(pairs);
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
  PUMICE_ENSURES(in != nullptr && out != nullptr && in->device() == out->device(),
                 "a kernel map between sets on two devices");
  auto map = std::shared_ptr<KernelMap>(
      new KernelMap(std::move(window), std::move(in), std::move(out), has_identity_offset));
  map->outputs_are_finer_ = outputs_are_finer;
  return map;
}

KeptWithMap& KernelMap::kept(const std::function<std::unique_ptr<KeptWithMap>()>& make) const {
  std::call_once(kept_once_, [&] { kept_ = make(); });
  return *kept_;
}

KernelMapView KernelMap::view() const& {
  if (device().kind == DeviceKind::cuda) {
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
