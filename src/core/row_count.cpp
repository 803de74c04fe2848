// Counts beside capacities.
#include <pumice/core/row_count.hpp>

namespace pumice {

RowCount RowCount::exact(std::int64_t rows) {
  RowCount result;
  result.count_ = std::make_shared<Buffer<std::int64_t>>(1);
  (*result.count_)[0] = rows;
  result.capacity_ = rows;
  return result;
}

RowCount RowCount::on_device(Buffer<std::int64_t> count, std::int64_t capacity) {
  RowCount result;
  result.host_knows_ = count.device().kind == DeviceKind::cpu;
  result.count_ = std::make_shared<Buffer<std::int64_t>>(std::move(count));
  result.capacity_ = capacity;
  return result;
}

std::int64_t RowCount::host() const {
  PUMICE_ENSURES(host_knows_, "the number of rows is on the device; read it back first");
  return count_ ? (*count_)[0] : 0;
}

RowCountRef RowCount::ref() const {
  return {count_ ? count_->data() : nullptr, capacity_};
}

}   // namespace pumice
