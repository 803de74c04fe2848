// Counts beside capacities.
#include <pumice/core/row_count.hpp>

#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

namespace pumice {
namespace {

std::int64_t checked(std::int64_t rows, std::int64_t capacity) {
  PUMICE_EXPECTS(rows != kPoison,
                 "these rows follow from others of which more were needed than there was room for");
  PUMICE_EXPECTS(rows >= 0 && rows <= capacity, rows, " rows needed, capacity ", capacity,
                 ": give a larger capacity");
  return rows;
}

}   // namespace

RowCount RowCount::exact(std::int64_t rows) {
  PUMICE_ENSURES(rows >= 0, rows, " rows");
  RowCount result;
  result.capacity_ = rows;
  return result;
}

RowCount RowCount::on_device(std::shared_ptr<std::int64_t> count, std::int64_t capacity,
                             Device device) {
  RowCount result;
  result.host_knows_ = device.kind == DeviceKind::cpu;
  result.count_ = std::move(count);
  result.capacity_ = capacity;
  return result;
}

std::int64_t RowCount::host() const {
  PUMICE_ENSURES(host_knows_, "the number of rows is on the device; wait_for_host reads it back");
  return checked(count_ ? *count_ : capacity_, capacity_);
}

std::int64_t RowCount::wait_for_host(StreamView stream) const {
  if (host_knows_) return host();
  check_can_wait(stream);
  std::int64_t rows = 0;
  copy_async(&rows, Device{}, count_.get(), stream.device, sizeof(rows), stream);
  wait(stream);
  return checked(rows, capacity_);
}

}   // namespace pumice
