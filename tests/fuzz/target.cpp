// The entry point of libFuzzer, and what any cloud must keep.
#include "fuzz/target.hpp"

#include <cmath>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pumice::fuzz::read_and_check(std::as_bytes(std::span(data, size)));
  return 0;
}

namespace pumice::fuzz {
namespace {

void check_column(const Tensor& column, DType dtype, std::int64_t points) {
  if (!column.defined()) return;
  if (column.dtype() != dtype || column.shape() != Shape{points})
    found("a column of another shape");
  if (dtype != DType::f32) return;
  for (const float value : column.span<float>()) {
    if (!std::isfinite(value)) found("a value that is not finite");
  }
}

}   // namespace

void check_cloud(const PointCloud& cloud) {
  const std::int64_t points = cloud.size();
  if (!cloud.positions.defined() || cloud.positions.shape() != Shape({points, 3})) {
    found("positions of another shape");
  }
  for (const float value : cloud.positions.span<float>()) {
    if (!std::isfinite(value)) found("a position that is not finite");
  }
  check_column(cloud.intensity, DType::f32, points);
  check_column(cloud.time, DType::f32, points);
  check_column(cloud.ring, DType::i32, points);
  check_column(cloud.labels, DType::i32, points);
  if (cloud.dropped_points < 0) found("a negative count of dropped points");
}

}   // namespace pumice::fuzz
