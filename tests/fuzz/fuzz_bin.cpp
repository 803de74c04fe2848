// Fuzz target of the raw reader: the first byte chooses the layout, the rest is the file.
#include <pumice/points/read.hpp>

#include <array>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {
namespace {

struct Choice {
  const char* layout;
  const char* name;
};
constexpr std::array<Choice, 6> kChoices{{{"", "scan.bin"},
                                          {"", "sweep.pcd.bin"},
                                          {"", "scan_f64x4.bin"},
                                          {"f16x5", "scan.bin"},
                                          {"f32x3", "scan.bin"},
                                          {"f64x6", "scan.bin"}}};

}   // namespace

bool read_and_check(Bytes bytes) {
  if (bytes.empty()) return false;
  const Choice& choice = kChoices[std::to_integer<std::size_t>(bytes[0]) % kChoices.size()];
  return accepts(bytes, [&] {
    check_cloud(read_points_from(bytes.subspan(1), PointFormat::raw, {.layout = choice.layout},
                                 choice.name));
  });
}

std::vector<std::string> seeds() {
  const std::vector<test::Row> rows = test::scan_rows(100);   // enough to judge the order by
  using namespace std::string_literals;
  return {"\0"s + test::raw_bytes<float>(rows, 4),  "\1"s + test::raw_bytes<float>(rows, 5),
          "\2"s + test::raw_bytes<double>(rows, 4), "\3"s + test::raw_bytes<Half>(rows, 5),
          "\4"s + test::raw_bytes<float>(rows, 3),  "\5"s + test::raw_bytes<double>(rows, 6)};
}

}   // namespace pumice::fuzz
