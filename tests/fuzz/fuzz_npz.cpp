// Fuzz target of the .npz reader.
#include <pumice/points/read.hpp>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_cloud(read_points_from(bytes, PointFormat::npz)); });
}

std::vector<std::string> seeds() {
  const std::vector<test::Row> rows = test::scan_rows(8);
  const std::string array = test::npy_bytes<float>(rows, 4);
  return {test::zip_bytes({{"only.npy", array}}), test::zip_bytes({{"only.npy", array, true}}),
          test::zip_bytes({{"a.npy", array, true, true}, {"points.npy", array, false, true}})};
}

}   // namespace pumice::fuzz
