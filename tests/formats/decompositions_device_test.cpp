// Patterns that are cut on a device are those that the CPU cuts, list by list.
// Covers formats/cuda/part_cut and cut_checks.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/formats/decompositions.hpp>

#include "formats/every_format.hpp"
#include "formats/same_parts.hpp"
#include "graphs/random_pattern.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::test {
namespace {

void check(const CsrView& here, std::uint64_t seed, const Stream& stream) {
  const Csr on_device = copy_to(stream, here);
  const CsrView there = on_device.view();
  const std::vector<NamedFormat> expected = every_format(here, seed);
  const std::vector<NamedFormat> made = every_format(here, seed, {there, stream});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i].name);
    expect_same_parts(copy_to_host(made[i].parts, stream), expected[i].parts);
  }
}

TEST(DecompositionsGpu, are_those_of_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::uint64_t seed = 70;
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    const Csr pattern = one.csr();
    check(pattern.view(), ++seed, stream);
    const Csr back = transposed(pattern.view());
    check(back.view(), ++seed, stream);
  }
}

TEST(DecompositionsGpu, keep_entries_that_repeat_in_blocks) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  PatternCase one{"repeated", 5, 6, {}, {}};
  for (std::int64_t e = 0; e < 60; ++e) {
    one.row.push_back(e * e % 5);
    one.column.push_back(e % 3 + 2);
  }
  const Csr pattern = one.csr();
  for (std::uint64_t seed = 1; seed < 5; ++seed)
    check(pattern.view(), seed, stream);
}

TEST(DecompositionsGpu, of_random_patterns_are_those_of_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const std::uint64_t problems = on_emulator() ? 12 : 300;
  for (std::uint64_t seed = 900; seed < 900 + problems; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t rows = random.integer(1, 80), columns = random.integer(1, 80);
    const Csr pattern = random_pattern(rows, columns, random.integer(0, 400), seed).csr();
    check(pattern.view(), seed, stream);
  }
  if (on_emulator()) return;
  const Csr large = random_pattern(120'000, 65'537, 2'000'000, 5).csr();
  check(large.view(), 17, stream);
}

TEST(DecompositionsGpu, refuse_what_does_not_fit) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(6, 8, 20, 1);
  const Csr here = one.csr();
  const Csr there = copy_to(stream, here.view());
  EXPECT_EQ(message_of([&] { formats::ell(there.view()); }),
            "ell: the pattern is on cuda:0 and the stream on cpu: give a stream of the pattern's "
            "device");
  const Tensor type = i64(std::vector<std::int64_t>(20, 1));
  EXPECT_EQ(message_of([&] {
              formats::csf(there.view(), {type.view(), 3}, stream);
            }),
            "csf: types are on cpu and the pattern on cuda:0: copy_to brings one to the other");
  const Tensor type_there = copy_to(stream, type);
  EXPECT_NE(message_of([&] {
              formats::csf(there.view(), {type_there.view(), 1}, stream);
            }).find("] = 1 where there are 1: give numbers from 0 on"),
            std::string::npos);
  const std::vector<PartShape> shapes{{}, {.width = 2}};
  const Tensor part = copy_to(stream, i64(std::vector<std::int64_t>(20, 2)));
  EXPECT_NE(message_of([&] {
              formats::decompose(there.view(), shapes, part, {}, stream);
            }).find("] = 2 where there are 2: give numbers from 0 on"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { formats::decompose(there.view(), {}, part, {}, stream); }),
            "decompose: no parts for 20 entries: give a shape for each part");
  EXPECT_NO_THROW(stream.wait()) << "nothing is left to be said";
  EXPECT_EQ(message_of([&] {
              formats::decompose(here.view(), std::span<const PartShape>(),
                                 i64(std::vector<std::int64_t>(20, 0)));
            }),
            "decompose: no parts for 20 entries: give a shape for each part");
  const Csr none_here(6, 8, i64({}), i64({}));
  const Csr none = copy_to(stream, none_here.view());
  const Tensor of_none = copy_to(stream, i64({}));
  EXPECT_TRUE(formats::decompose(none.view(), std::span<const PartShape>(), of_none, {}, stream)
                  .parts()
                  .empty());
  const Csr few = random_pattern(3000, 3000, 3000, 2).csr();
  const Csr wide = copy_to(stream, few.view());
  EXPECT_NE(message_of([&] {
              formats::ell(wide.view(), 1 << 20, stream);
            }).find("ell: more than 67108864 positions for 3000 entries"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::test
