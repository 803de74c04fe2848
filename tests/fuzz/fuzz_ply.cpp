// Fuzz target of the .ply reader.
#include <pumice/points/read.hpp>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_cloud(read_points_from(bytes, PointFormat::ply)); });
}

std::vector<std::string> seeds() {
  using testing::PlyStorage;
  const std::vector<testing::Row> rows = testing::scan_rows(8);
  return {testing::ply_bytes(rows, PlyStorage::ascii), testing::ply_bytes(rows, PlyStorage::little),
          testing::ply_bytes(rows, PlyStorage::big), testing::ply_bytes({}, PlyStorage::little)};
}

}   // namespace pumice::fuzz
