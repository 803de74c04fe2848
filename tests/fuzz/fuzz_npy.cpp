// Fuzz target of the .npy reader, of points and of any array.
#include <pumice/points/read.hpp>

#include "fuzz/target.hpp"
#include "points/formats.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  const bool array = accepts(bytes, [&] {
    const Tensor tensor = detail::read_npy_array(bytes, "array in memory");
    if (!tensor.defined()) found("an undefined array");
  });
  const bool points =
      accepts(bytes, [&] { check_cloud(read_points_from(bytes, PointFormat::npy)); });
  if (points && !array) found("points that are no array");
  return points;
}

std::vector<std::string> seeds() {
  const std::vector<test::Row> rows = test::scan_rows(8);
  return {test::npy_bytes<float>(rows, 4), test::npy_bytes<double>(rows, 3, {">f8", true, 2}),
          test::npy_bytes<Half>(rows, 5, {"<f2", false, 3}), test::npy_bytes<float>({}, 3)};
}

}   // namespace pumice::fuzz
