// The digest against the examples of FIPS 180-4 and its neighbours.
#include "jit/sha256.hpp"

#include <gtest/gtest.h>

namespace pumice::jit {
namespace {

std::string digest_of(std::string_view text) {
  Sha256 digest;
  digest.add(text);
  return hexadecimal(digest.finish());
}

TEST(Sha256, AgreesWithTheStandardsExamples) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheTextIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += static_cast<char>(i * 7);
  const std::string whole = digest_of(text);
  for (const std::size_t step : {1u, 31u, 63u, 64u, 65u, 200u}) {
    Sha256 digest;
    for (std::size_t at = 0; at < text.size(); at += step)
      digest.add(std::string_view(text).substr(at, step));
    EXPECT_EQ(hexadecimal(digest.finish()), whole) << step;
  }
}

TEST(Sha256, EveryLengthAroundABlockIsPaddedItsOwnWay) {
  std::string last;
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string now = digest_of(std::string(size, '\0'));
    EXPECT_NE(now, last) << size;
    last = now;
  }
}

TEST(Sha256, FieldsDoNotRunIntoEachOther) {
  Sha256 first;
  first.add_field("ab");
  first.add_field("c");
  Sha256 second;
  second.add_field("a");
  second.add_field("bc");
  EXPECT_NE(first.finish(), second.finish());
}

}   // namespace
}   // namespace pumice::jit
