// Fuzz target of the .ply reader.
#include <pumice/points/read.hpp>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_cloud(read_points_from(bytes, PointFormat::ply)); });
}

std::vector<std::string> seeds() {
  using test::PlyStorage;
  const std::vector<test::Row> rows = test::scan_rows(8);
  return {test::ply_bytes(rows, PlyStorage::ascii), test::ply_bytes(rows, PlyStorage::little),
          test::ply_bytes(rows, PlyStorage::big), test::ply_bytes({}, PlyStorage::little)};
}

}   // namespace pumice::fuzz
