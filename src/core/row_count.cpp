// Counts beside capacities.
#include <pumice/core/row_count.hpp>

#include <utility>

#include <pumice/core/error.hpp>

namespace pumice {

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
  PUMICE_ENSURES(host_knows_, "the number of rows is on the device; read it back first");
  PUMICE_EXPECTS(!ref().poisoned(), *count_, " rows needed, capacity ", capacity_,
                 ": give a larger capacity");
  return ref().rows();
}

}   // namespace pumice
