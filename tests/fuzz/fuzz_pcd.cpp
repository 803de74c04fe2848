// Fuzz target of the .pcd reader.
#include <pumice/points/read.hpp>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_cloud(read_points_from(bytes, PointFormat::pcd)); });
}

std::vector<std::string> seeds() {
  const std::vector<test::Row> rows = test::scan_rows(8);
  const std::vector<test::Row> still(40, test::Row{});   // makes LZF copies
  std::string mixed =
      "VERSION .7\nFIELDS label _ z ring y x time\nSIZE 4 1 8 2 4 4 4\nTYPE U U F I F F F\n"
      "COUNT 1 3 1 1 1 1 1\nWIDTH 2\nHEIGHT 2\nDATA binary\n";
  mixed += std::string(std::size_t{4} * 29, '\0');
  return {test::pcd_ascii(rows), test::pcd_binary(rows), test::pcd_compressed(rows),
          test::pcd_compressed(still), mixed};
}

}   // namespace pumice::fuzz
