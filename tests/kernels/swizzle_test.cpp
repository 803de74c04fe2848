// The patterns in which rows lie in shared memory: nothing is lost, and eight rows of one column of
// chunks lie in different banks.
// Covers device/pumice/shared/swizzle.h.
#include <set>

#include <gtest/gtest.h>

#include <pumice/shared/swizzle.h>
#include <pumice/shared/tile_limits.h>

namespace pumice {
namespace {

constexpr int kLine = 128;   // bytes of all banks

class Swizzle : public ::testing::TestWithParam<int> {};

TEST_P(Swizzle, moves_chunks_within_their_row) {
  const int row_bytes = GetParam();
  for (int row = 0; row < 64; ++row) {
    std::set<int> offsets;
    for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
      const int offset = swizzled_offset(row_bytes, row, chunk);
      EXPECT_EQ(offset / row_bytes, row);
      EXPECT_EQ(offset % 16, 0);
      offsets.insert(offset);
    }
    EXPECT_EQ(static_cast<int>(offsets.size()), row_bytes / 16);
  }
}

TEST_P(Swizzle, spreads_eight_rows_over_all_banks) {
  const int row_bytes = GetParam();
  for (int first = 0; first < 64; first += 8) {
    for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
      std::set<int> banks;
      for (int row = first; row < first + 8; ++row)
        banks.insert(swizzled_offset(row_bytes, row, chunk) % kLine / 16);
      EXPECT_EQ(banks.size(), 8u) << "rows from " << first << ", chunk " << chunk;
    }
  }
}

TEST_P(Swizzle, is_what_address_bits_say) {
  const int row_bytes = GetParam();
  const int bits = row_bytes == 128 ? 7 : row_bytes == 64 ? 3 : 1;
  for (int row = 0; row < 64; ++row) {
    for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
      const int plain = row * row_bytes + chunk * 16;
      EXPECT_EQ(swizzled_offset(row_bytes, row, chunk), plain ^ ((plain >> 7 & bits) << 4));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Swizzle, ::testing::Values(32, 64, 128));

/// Lanes of a half-warp write pairs of an accumulator: rows l / 4, columns 2 (l % 4).
TEST(StagingLayout, accumulators_are_written_without_bank_conflicts) {
  for (const int columns : {16, 32, 48, 64, 96, 256}) {
    TileSpec spec;
    spec.tile_columns = columns;
    const int half = staging_half(spec), pitch = staging_pitch(spec);
    std::set<int> banks;
    for (int lane = 0; lane < 16; ++lane) {
      const int column = lane % 4 * 2;
      const int at = lane / 4 * pitch + column % 4 + (column < 4 ? 0 : half);
      banks.insert(at % 32);
      banks.insert((at + 1) % 32);
    }
    EXPECT_EQ(banks.size(), 32u) << columns << " columns";
  }
}

}   // namespace
}   // namespace pumice
