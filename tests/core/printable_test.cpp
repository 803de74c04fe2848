// Nothing that a file or its name says reaches a terminal as a command.
#include "core/printable.hpp"

#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace pumice {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  for (const char* text : {"", "car", "a b\\n", "Straße", "汽车", "naïve \"x\"", "🚗", "é"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\x07"), "\\x1b[31mred\\x1b]0;title\\x07");
  EXPECT_EQ(printable(std::string("a\nb\tc\rd\0e\x7f", 10)), "a\\nb\\tc\\rd\\x00e\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");   // CSI in one character
  EXPECT_EQ(printable("abc\xe2\x80\xae"
                      "cba"),
            "abc\\u202ecba");                                  // turns the text round
  EXPECT_EQ(printable("a\xf3\xa0\x81\x81"), "a\\U000e0041");   // a tag, which is not seen
}

TEST(Printable, ShowsWhatIsNotUtf8ByteByByte) {
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");               // Latin-1
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");            // '/' in two bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");   // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");   // cut short
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable(std::string(5000, 'a'), 40), std::string(40, 'a') + "…");
  EXPECT_EQ(printable("ääää", 4), "ääää");
  EXPECT_EQ(printable("ääää", 3), "äää…");
  EXPECT_EQ(printable("\x1b\x1b\x1b", 2), "\\x1b\\x1b…");
}

TEST(Printable, KeepsBothEndsOfPathsAndMessages) {
  const std::string folder(5000, 'f');
  const std::string path = printable_path("/first/" + folder + "/last.ply");
  EXPECT_EQ(path.find("/first/f"), 0u);
  EXPECT_TRUE(path.ends_with("f/last.ply"));
  EXPECT_EQ(path.size(), 239 + std::string("…").size());
  const std::string message = printable_message("a.ply: " + folder + ": remedy\n");
  EXPECT_EQ(message.find("a.ply: f"), 0u);
  EXPECT_TRUE(message.ends_with("f: remedy\\n"));
  EXPECT_EQ(printable_message("two\nlines\x1b", Newlines::kept), "two\nlines\\x1b");
}

/// Valid UTF-8, without control characters, and of bounded length, whatever the bytes.
TEST(Printable, HoldsForAnyBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(random() % 80, '\0');
    for (char& byte : bytes) {
      // Half of them from the bytes that escapes and long characters are made of.
      constexpr std::string_view kOften = "\x1b\n\xe2\x80\xae\xc2\x9b\xf0\x9f";
      byte = random() % 2 == 0 ? kOften[random() % kOften.size()] : static_cast<char>(random());
    }
    const std::string text = printable(bytes, 50);
    EXPECT_LE(text.size(), 50u * 10 + 3);
    EXPECT_EQ(printable(text, 1000), text) << "is not printable";
    for (const char c : text)
      EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  }
}

}   // namespace
}   // namespace pumice
