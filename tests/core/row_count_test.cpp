// Counts beside capacities: exact ones need no word, and one exceeded says so with the numbers.
#include <pumice/core/row_count.hpp>

#include <array>
#include <memory>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

TEST(RowCount, ExactOnesNeedNoWord) {
  const RowCount exact = RowCount::exact(42);
  EXPECT_EQ(exact.host(), 42);
  EXPECT_EQ(exact.capacity(), 42);
  EXPECT_EQ(exact.word(), nullptr);
  EXPECT_EQ(exact.ref().rows(), 42);
  EXPECT_EQ(RowCount().host(), 0);
}

TEST(RowCount, CountsWhereTheDataIs) {
  const auto words = std::make_shared<std::array<std::int64_t, 2>>();
  const RowCount first = RowCount::on_device({words, &(*words)[0]}, 100, Device{});
  *first.word() = 7;
  EXPECT_EQ(first.host(), 7);
  EXPECT_EQ(first.capacity(), 100);
  EXPECT_EQ(first.ref().rows(), 7);

  const RowCount hidden =
      RowCount::on_device({words, &(*words)[1]}, 100, Device{DeviceKind::cuda, 1});
  EXPECT_FALSE(hidden.host_knows());
  EXPECT_THROW((void)hidden.host(), InternalError);
}

TEST(RowCount, ExceededIsReportedWithTheNumbersAndNoRowIsTouched) {
  const auto word = std::make_shared<std::int64_t>(91767);
  const RowCount count = RowCount::on_device(word, 50000, Device{});
  EXPECT_TRUE(count.ref().poisoned());
  EXPECT_EQ(count.ref().rows(), 0);
  try {
    (void)count.host();
    FAIL() << "a poisoned count was read";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "91767 rows needed, capacity 50000: give a larger capacity");
  }
}

}   // namespace
}   // namespace pumice
