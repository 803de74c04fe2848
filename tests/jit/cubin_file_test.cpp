// Files of compiled kernels: what is damaged, cut or of another kernel never reaches the driver.
#include "jit/cubin_file.hpp"

#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace pumice::jit {
namespace {

constexpr Digest kKey{1, 2, 3};

CompileResult some_kernel() {
  CompileResult compiled;
  for (int i = 0; i < 5000; ++i)
    compiled.cubin.push_back(static_cast<std::byte>(i * 31));
  compiled.log =
      "ptxas info    : Compiling entry function 'conv' for 'sm_80'\n"
      "ptxas info    : Used 40 registers\n";
  compiled.kernels = parse_reports(compiled.log);
  return compiled;
}

std::string problem_of(std::span<const std::byte> bytes, const Digest& key = kKey) {
  std::string problem;
  EXPECT_FALSE(decode_cubin(key, bytes, problem).has_value());
  return problem;
}

TEST(CubinFile, GivesBackWhatItWasGiven) {
  const CompileResult compiled = some_kernel();
  std::string problem;
  const auto decoded = decode_cubin(kKey, encode_cubin(kKey, compiled), problem);
  ASSERT_TRUE(decoded.has_value()) << problem;
  EXPECT_EQ(decoded->cubin, compiled.cubin);
  EXPECT_EQ(decoded->log, compiled.log);
  ASSERT_EQ(decoded->kernels.size(), 1u);
  EXPECT_EQ(decoded->kernels[0].registers, 40);
}

TEST(CubinFile, EveryCutIsNoticed) {
  const auto bytes = encode_cubin(kKey, some_kernel());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(problem_of(std::span(bytes).first(size)), "") << size;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(problem_of(longer), "its size is not the one it names");
}

TEST(CubinFile, EveryChangedByteIsNoticed) {
  const auto good = encode_cubin(kKey, some_kernel());
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (at >= 12 && at < 16) continue;   // unused
    auto bytes = good;
    bytes[at] ^= std::byte{0x10};
    EXPECT_NE(problem_of(bytes), "") << at;
  }
}

TEST(CubinFile, SaysWhatIsWrong) {
  const auto bytes = encode_cubin(kKey, some_kernel());
  EXPECT_EQ(problem_of(bytes, Digest{9}), "it is the kernel of another source");
  EXPECT_EQ(problem_of(std::vector<std::byte>(4000, std::byte{'x'})), "it is no compiled kernel");
  EXPECT_EQ(problem_of(std::span(bytes).first(50)), "it is shorter than its header");
  auto damaged = bytes;
  damaged.back() ^= std::byte{1};
  EXPECT_EQ(problem_of(damaged), "its content is damaged");
}

TEST(CubinFile, SizesThatOverflowAreRefused) {
  auto bytes = encode_cubin(kKey, some_kernel());
  const std::uint64_t huge = ~std::uint64_t{0} - 100;
  std::memcpy(bytes.data() + 48, &huge, sizeof(huge));   // the cubin's size
  EXPECT_EQ(problem_of(bytes), "its size is not the one it names");
}

class CubinFileOnDisk : public ::testing::Test {
 protected:
  void write(const std::vector<std::byte>& bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::string problem() const {
    std::string said;
    EXPECT_FALSE(read_cubin(path_, kKey, said).has_value());
    return said;
  }
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "k.cubin";
};

TEST_F(CubinFileOnDisk, IsReadWhereItIsAndSilentlyMissedWhereNot) {
  EXPECT_EQ(problem(), "");
  write(encode_cubin(kKey, some_kernel()));
  std::string said = "left over";
  EXPECT_TRUE(read_cubin(path_, kKey, said).has_value());
  EXPECT_EQ(said, "");
}

TEST_F(CubinFileOnDisk, OnlyARegularFileOfThisUserIsRead) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(problem(), "it is no regular file");
  std::filesystem::remove(path_);

  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(problem(), "it is no regular file");   // and nobody waits for a writer
  std::filesystem::remove(path_);

  const std::filesystem::path real = path_;
  path_ = folder_ / "real.cubin";
  write(encode_cubin(kKey, some_kernel()));
  std::filesystem::create_symlink(path_, real);
  path_ = real;
  EXPECT_TRUE(problem().starts_with("it cannot be opened: ")) << problem();
}

TEST_F(CubinFileOnDisk, AFileOfAnotherUserIsRefused) {
  write(encode_cubin(kKey, some_kernel()));
  if (::chown(path_.c_str(), 12345, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "only root can give a file to another user";
  EXPECT_EQ(problem(), "it belongs to another user");
}

TEST_F(CubinFileOnDisk, AHugeFileIsNotRead) {
  write({std::byte{0}});
  std::filesystem::resize_file(path_, kMostCubinBytes + 1);   // a hole: takes no room
  EXPECT_EQ(problem(), "it is larger than any compiled kernel");
}

}   // namespace
}   // namespace pumice::jit
