// Parts on a device and back are the parts that went, list by list.
// Covers formats/copy_parts and flat_parts.
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

TEST(CopyPartsGpu, there_and_back_nothing_changes) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::uint64_t seed = 40;
  for (const PatternCase& one : pattern_cases()) {
    SCOPED_TRACE(one.name);
    const Csr pattern = one.csr();
    const Csr on_device = copy_to(stream, pattern.view());
    for (const NamedFormat& format : every_format(pattern.view(), ++seed)) {
      SCOPED_TRACE(format.name);
      const Decomposed there = copy_to(stream, format.parts);
      EXPECT_EQ(there.device(), kGpu);
      validate(there);
      validate(there, on_device.view());
      expect_same_parts(copy_to_host(there, stream), format.parts);
      const Csr again = csr(there);
      EXPECT_EQ(again.view().device, kGpu);
      const Csr back = copy_to_host(again.view(), stream);
      validate(format.parts, back.view());
    }
  }
}

TEST(CopyPartsGpu, refuse_parts_that_are_elsewhere) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 5, 9, 1);
  const Csr pattern = one.csr();
  const Decomposed here = formats::hyb(pattern.view());
  const Decomposed there = copy_to(stream, here);
  EXPECT_EQ(message_of([&] { (void)copy_to(stream, there); }),
            "copy_to: the parts are on cuda:0: give parts on the CPU");
  EXPECT_EQ(message_of([&] { (void)copy_to_host(here, stream); }),
            "copy_to_host: the parts are on cpu and the stream on cuda:0: give a stream of the "
            "parts' device");
  EXPECT_EQ(message_of([&] { validate(there, pattern.view()); }),
            "validate: the parts are on cuda:0 and the pattern on cpu: give both of one device");
}

// Products on a device know padding by its column; on the CPU a hole may have one.
TEST(CopyPartsGpu, refuse_holes_that_have_a_column) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 5, 9, 1);
  const Csr pattern = one.csr();
  std::vector<Part> parts = formats::ell(pattern.view(), 4).parts();
  const PartView view = parts[0].view();
  std::int64_t holes = 0;
  for (std::size_t slot = 0; slot < view.entry.size(); ++slot) {
    if (view.entry[slot] >= 0) continue;
    parts[0].column.span<std::int32_t>()[slot] = 0;
    ++holes;
  }
  ASSERT_GT(holes, 0);
  const Decomposed with_holes = formats::decompose(pattern.view(), std::move(parts));
  EXPECT_EQ(message_of([&] { (void)copy_to(stream, with_holes); }),
            "copy_to: part 0 has a hole in a slot with a column, which products on a device would "
            "read: give holes the column -1");
}

TEST(CopyPartsGpu, blocks_are_waited_for_too) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 6, 9, 1);
  const Csr pattern = one.csr();
  for (const Decomposed& parts :
       {formats::bsr(pattern.view(), 2, 3), formats::ell(pattern.view(), 2)}) {
    const Tensor wrong = copy_to(stream, i64({0, 5}));
    const Csr made(2, 6, wrong, wrong);   // which the device finds out
    EXPECT_EQ(message_of([&] { (void)copy_to(stream, parts); }),
              "Csr: row[1] = 5 where there are 2: give numbers from 0 on");
  }
}

TEST(CopyPartsGpu, validate_finds_what_is_wrong_there) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 5, 9, 1);
  const Csr pattern = one.csr();
  const Decomposed there = copy_to(stream, formats::hyb(pattern.view(), {.widths = {2}}));
  Tensor entry = there.parts()[0].entry;   // shares the memory
  const std::int64_t wrong = 77;
  copy_async(entry.raw(), kGpu, &wrong, Device{}, sizeof wrong, stream);
  EXPECT_NE(message_of([&] { validate(there); }).find("entry[0] = 77 where there are 9 entries"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::test
