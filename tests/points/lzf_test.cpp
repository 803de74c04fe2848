// LZF: every command, and every way to run out of bytes.
#include "points/lzf.hpp"

#include <string>

#include <gtest/gtest.h>

#include "points/scan_bytes.hpp"

namespace pumice {
namespace {

bool unpack(const std::string& packed, std::string& out) {
  return detail::lzf_decompress(test::as_bytes(packed), std::as_writable_bytes(std::span(out)));
}

TEST(Lzf, CopiesLiteralsAndEarlierBytes) {
  std::string out(3 + 8 + 14, '?');
  // "abc"; 8 bytes from 3 back; 14 bytes (7 + 5 + 2) from 2 back.
  ASSERT_TRUE(
      unpack(std::string("\x02") + "abc" + "\xc0\x02" + std::string("\xe0\x05\x01", 3), out));
  EXPECT_EQ(out,
            "abcabcabcab"
            "ababababababab");
}

TEST(Lzf, UndoesWhatAnEncoderDid) {
  for (const std::int64_t size : {0, 1, 31, 33, 65537}) {
    std::string text;
    Random random(static_cast<std::uint64_t>(size));
    while (static_cast<std::int64_t>(text.size()) < size) {
      const auto run = static_cast<std::size_t>(random.integer(1, 400));
      text.append(random.uniform() < 0.5 ? run : 1, static_cast<char>(random.bits()));
    }
    text.resize(static_cast<std::size_t>(size));
    std::string out(text.size(), '?');
    EXPECT_TRUE(unpack(test::lzf_bytes(text), out));
    EXPECT_EQ(out, text);
  }
}

TEST(Lzf, RefusesWhatDoesNotFit) {
  std::string out(4, '?');
  EXPECT_FALSE(unpack(std::string("\x03") + "abc", out)) << "literals end too early";
  EXPECT_FALSE(unpack(std::string("\x04") + "abcde", out)) << "more literals than room";
  EXPECT_FALSE(unpack(std::string("\x02") + "abc", out)) << "less than announced";
  EXPECT_FALSE(unpack("\x20", out)) << "a copy without its offset";
  EXPECT_FALSE(unpack("\xe0", out)) << "a long copy without its length";
  EXPECT_FALSE(unpack(std::string("\x20\x00", 2), out)) << "a copy from before the beginning";
  EXPECT_FALSE(unpack(std::string("\x00") + "a" + std::string("\x60\x00", 2), out)) << "too long";
}

}   // namespace
}   // namespace pumice
