// The system is asked for huge pages where memory holds whole ones.
#include <pumice/core/huge_pages.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace pumice::test {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;

/// Whether the mapping that holds `address` is to have huge pages, as the system says.
bool is_preferred(const std::byte* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool is_inside = false;
  while (std::getline(maps, line)) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_inside = begin <= at && at < end;
    if (is_inside && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
  }
  return false;
}

class HugePages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
      GTEST_SKIP() << "this system has no transparent huge pages";
    void* const mapped =
        mmap(nullptr, 5 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<std::byte*>(mapped);
    const auto at = reinterpret_cast<std::uintptr_t>(mapped);
    page_ = memory_ + (kPage - at % kPage) % kPage;
  }
  void TearDown() override {
    if (memory_ != nullptr) munmap(memory_, 5 * kPage);
  }

  std::byte* memory_ = nullptr;
  std::byte* page_ = nullptr;   // the first whole one
};

TEST_F(HugePages, ArePreferredWhereWholeOnesFit) {
  prefer_huge_pages(page_ + 4096, 3 * kPage);
  EXPECT_FALSE(is_preferred(page_ + 4096)) << "a part of a page";
  EXPECT_TRUE(is_preferred(page_ + kPage));
  EXPECT_TRUE(is_preferred(page_ + 3 * kPage - 1));
  EXPECT_FALSE(is_preferred(page_ + 3 * kPage)) << "a part of a page";
}

TEST_F(HugePages, AreLeftAloneWhereNoneFits) {
  prefer_huge_pages(nullptr, 0);
  prefer_huge_pages(page_, 0);
  prefer_huge_pages(page_, kPage - 1);
  prefer_huge_pages(page_ + 1, 2 * kPage - 2);
  EXPECT_FALSE(is_preferred(page_));
  EXPECT_FALSE(is_preferred(page_ + kPage));
  prefer_huge_pages(page_, kPage);
  EXPECT_TRUE(is_preferred(page_));
}

}   // namespace
}   // namespace pumice::test
