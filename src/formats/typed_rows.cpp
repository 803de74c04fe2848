#include <pumice/formats/typed_rows.hpp>

#include <limits>
#include <numeric>
#include <utility>

#include <pumice/core/error.hpp>

#include "formats/cuda/typed_formats.hpp"

namespace pumice {
namespace {

void check_bounds(std::span<const std::int64_t> begin) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(!begin.empty() && begin.front() == 0, "TypedRows: bounds begin with ",
                 begin.empty() ? -1 : begin.front(),
                 ": give where each type begins, from 0 on, and the end");
  for (std::size_t type = 1; type < begin.size(); ++type)
    PUMICE_EXPECTS(begin[type] >= begin[type - 1], "TypedRows: begin[", type, "] = ", begin[type],
                   " after ", begin[type - 1], ": bounds ascend");
  PUMICE_EXPECTS(begin.back() <= kMost, "TypedRows: ", begin.back(), " rows: give at most ", kMost);
}

}   // namespace

TypedRows::TypedRows(std::vector<std::int64_t> begin, StreamView stream)
    : begin_(std::move(begin)), stream_(stream) {
  check_bounds(begin_);
  if (stream.device.kind == DeviceKind::cuda) {
    formats_ = std::make_unique<cuda::TypedFormats>(begin_, stream);
    return;
  }
  row_ = Buffer<std::int32_t>(rows());
  std::iota(row_.data(), row_.data() + row_.size(), 0);
}

TypedRows::~TypedRows() = default;

RelationView TypedRows::relation() const {
  RelationView relation{.offsets = types(),
                        .in_rows = rows(),
                        .out_rows = rows(),
                        .device = stream_.device,
                        .formats = formats_.get()};
  if (formats_ != nullptr) return relation;
  relation.offset_begin = begin_;
  relation.in = relation.out = row_.span();
  relation.sorted_by_out = relation.sorted_by_in = true;
  return relation;
}

}   // namespace pumice
