// .npz archives: which member is taken, how it may be stored, and archives that lie.
#include <gtest/gtest.h>

#include <pumice/points/read.hpp>

#include "points/expect_points.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

using namespace test;

PointCloud read_npz_bytes(const std::string& bytes) {
  return read_points_from(as_bytes(bytes), PointFormat::npz, {}, "scan.npz");
}
std::string complaint(const std::string& bytes) {
  return message_of([&] { read_npz_bytes(bytes); });
}

/// Overwrites the little-endian number at `at`.
template <class T> std::string with_number(std::string bytes, std::size_t at, T value) {
  std::string raw;
  append(raw, value);
  return bytes.replace(at, raw.size(), raw);
}

TEST(NpzScan, ComesBackStoredAndDeflatedAtAnySize) {
  for (const std::int64_t size : kSizes) {
    const std::vector<Row> rows = scan_rows(size);
    const std::string array = npy_bytes<float>(rows, 4);
    for (const bool deflated : {false, true}) {
      for (const bool zip64 : {false, true}) {
        expect_points(read_npz_bytes(zip_bytes({{"whatever.npy", array, deflated, zip64}})), rows);
      }
    }
  }
}

TEST(NpzScan, TakesTheMemberThatIsNamedForPoints) {
  const std::vector<Row> rows = scan_rows(10);
  const std::string other = npy_bytes<float>(scan_rows(3), 3);
  for (const char* name : {"points.npy", "xyz.npy", "coords.npy"}) {
    expect_points(read_npz_bytes(zip_bytes({{"colours.npy", other},
                                            {name, npy_bytes<float>(rows, 4), true},
                                            {"normals.npy", other}})),
                  rows);
  }
  EXPECT_EQ(complaint(zip_bytes({{"a.npy", other}, {"b.npy", other}})),
            "scan.npz: which array holds the points? It has a.npy, b.npy; name one points, xyz or "
            "coords");
  EXPECT_EQ(complaint(zip_bytes({})), "scan.npz: holds no array");
}

TEST(NpzScan, NamesTheMemberInErrors) {
  std::vector<Row> rows = scan_rows(4);
  rows[2][0] = std::nanf("");
  const std::string message = complaint(zip_bytes({{"xyz.npy", npy_bytes<float>(rows, 3)}}));
  EXPECT_EQ(message.substr(0, 35), "scan.npz/xyz.npy: point 2 is (nan, ");
}

TEST(NpzScan, ThatIsCutShortAnywhereIsRefused) {
  const std::string whole = zip_bytes({{"points.npy", npy_bytes<float>(scan_rows(20), 4), true}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(complaint(whole.substr(0, size)), "(nothing was thrown)") << size;
  }
}

TEST(NpzScan, ThatLiesIsRefused) {
  const std::string array = npy_bytes<float>(scan_rows(20), 4);
  const std::string whole = zip_bytes({{"points.npy", array, true}});
  const std::size_t entry = whole.find("PK\x01\x02");
  const std::size_t end = whole.find("PK\x05\x06");
  ASSERT_NE(entry, std::string::npos);
  EXPECT_EQ(complaint("GIF89a"), "scan.npz: is not a zip archive");
  EXPECT_EQ(complaint(std::string(100, 'x')),
            "scan.npz: has no end record; it is not a zip archive or is truncated");
  EXPECT_EQ(complaint(with_number(whole, end + 10, std::uint16_t{60000})),
            "scan.npz: announces 60000 members in a directory of 56 bytes; it is damaged");
  EXPECT_EQ(complaint(with_number(whole, end + 16, std::uint32_t{0x70000000})),
            "scan.npz: a record of the archive lies outside the file; it is truncated or damaged");
  EXPECT_EQ(complaint(with_number(whole, entry + 20, std::uint32_t{100000})),
            "scan.npz: member points.npy overlaps another one or lies outside the file; it is "
            "damaged");
  EXPECT_EQ(complaint(with_number(whole, entry + 42, std::uint32_t{100000})),
            "scan.npz: member points.npy overlaps another one or lies outside the file; it is "
            "damaged");
  EXPECT_EQ(complaint(with_number(whole, entry + 10, std::uint16_t{12})),
            "scan.npz: member points.npy is compressed by method 12; only stored and deflated ones "
            "are known");
  EXPECT_EQ(complaint(with_number(whole, entry + 8, std::uint16_t{1})),
            "scan.npz: member points.npy is encrypted; store it openly");
  EXPECT_EQ(complaint(with_number(whole, entry + 16, std::uint32_t{0})),
            "scan.npz: the checksum of member points.npy is wrong; it is damaged");
  const std::string twins = zip_bytes({{"points.npy", array}, {"points.npy", array}});
  EXPECT_EQ(complaint(twins), "scan.npz: has two members named points.npy");
}

TEST(NpzScan, ThatIsABombIsRefusedBeforeAnythingIsInflated) {
  const std::string whole = zip_bytes({{"points.npy", std::string(1000000, '\0'), true}});
  const std::size_t entry = whole.find("PK\x01\x02");
  const std::string message = complaint(with_number(whole, entry + 24, std::uint32_t{0xfffffff0}));
  EXPECT_NE(message.find("scan.npz: member points.npy declares 4294967280 bytes from "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(", which cannot be"), std::string::npos) << message;
  // Declaring less than there is does not help either.
  EXPECT_EQ(complaint(with_number(whole, entry + 24, std::uint32_t{1000})),
            "scan.npz: member points.npy does not inflate to the 1000 bytes it declares; it is "
            "damaged");
}

TEST(NpzScan, ThatGrowsBeyondMeasureIsRefused) {
  // 400,000 bytes that do not compress, said to hold what deflate could have made of them.
  std::string noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525u + 1013904223u;
    append(noise, state ^ state >> 15);
  }
  const std::string whole = zip_bytes({{"points.npy", noise, true}});
  const std::size_t entry = whole.find("PK\x01\x02");
  constexpr std::uint32_t kAny = 256u << 20;
  const std::string message = complaint(with_number(whole, entry + 24, kAny + 4));
  EXPECT_NE(message.find("scan.npz: member points.npy would grow from "), std::string::npos)
      << message;
  EXPECT_NE(message.find(" to 268435460 bytes; beyond 268435456 no more than 100-fold is inflated"),
            std::string::npos)
      << message;
  // Up to there any growth may be meant: indices of a whole grid deflate to 1/400.
  EXPECT_EQ(
      complaint(with_number(whole, entry + 24, kAny)),
      "scan.npz: member points.npy does not inflate to the 268435456 bytes it declares; it is "
      "damaged");
}

}   // namespace
}   // namespace pumice
