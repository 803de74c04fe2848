// What kernels report reaches whoever waits, once and with the numbers.
#include "core/cuda/status.hpp"

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/row_count.hpp>
#include <pumice/core/stream.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::cuda {
namespace {

TEST(Status, SitesAreRegisteredByName) {
  const int voxels = status_site("voxels of status_test");
  EXPECT_NE(status_site("blocks of status_test"), voxels);
  EXPECT_EQ(status_site("voxels of status_test"), voxels);
}

TEST(Status, EveryTroubleIsASentenceWithItsNumbers) {
  StatusRecord record;
  record.site = status_site("voxels");
  record.needed = 91767;
  record.capacity = 50000;
  record.code = kOverCapacity;
  EXPECT_EQ(describe(record), "voxels: 91767 needed, capacity 50000: give a larger capacity");
  record.code = kOutsideLayout;
  EXPECT_EQ(
      describe(record),
      "voxels: 91767 of 50000 coordinates lie outside the declared bounds, or are no numbers: "
      "widen the bounds or drop these points");
  record.code = kDuplicateRows;
  EXPECT_EQ(describe(record),
            "voxels: 91767 of 50000 rows have the coordinates of another row: name a reduction");
  record.code = kPoisonedInput;
  EXPECT_EQ(describe(record),
            "voxels: follows from rows of which more were needed than there was room for");
  record.code = 77;
  record.site = 1 << 20;
  EXPECT_EQ(describe(record), "site 1048576: code 77, 91767 beside 50000");
}

/// Writes into a stream's record as a kernel would, by a copy in the stream's order.
void report(const Stream& stream, const StatusRecord& record) {
  copy_async(device_status(stream), test::kGpu, &record, Device{}, sizeof(record), stream);
}

TEST(StatusGpu, IsRaisedByTheNextWaitOfThatStreamAndCleared) {
  PUMICE_NEEDS_GPU();
  const Stream troubled(test::kGpu);
  const Stream clean(test::kGpu);
  EXPECT_EQ(device_status(troubled), device_status(troubled));
  EXPECT_NE(device_status(troubled), device_status(clean));
  StatusRecord record;
  record.claim = 1;
  record.code = kOverCapacity;
  record.site = status_site("voxels");
  record.needed = 7;
  record.capacity = 5;
  report(troubled, record);
  clean.wait();
  EXPECT_EQ(test::message_of([&] { troubled.wait(); }),
            "voxels: 7 needed, capacity 5: give a larger capacity");
  troubled.wait();
  EXPECT_FALSE(has_trouble(troubled));
  report(troubled, record);
  while (!has_trouble(troubled)) {
  }   // the device comes to it although nobody waits
  EXPECT_FALSE(has_trouble(clean));
  EXPECT_FALSE(has_trouble({}));
  EXPECT_THROW(wait(troubled), UserError);
  EXPECT_FALSE(has_trouble(troubled));
}

TEST(StatusGpu, IsKnownToTheDeviceBeforeAnybodyWaits) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Tensor seen = Tensor::full(Shape{3}, DType::i32, -1, stream);
  const auto look = [&](std::int64_t at) { copy_trouble(stream, seen.data<std::int32_t>() + at); };
  look(0);
  report(stream, {.claim = 1, .code = kPoisonedInput});
  look(1);
  EXPECT_THROW(stream.wait(), UserError);
  look(2);
  const Tensor host = copy_to_host(seen, stream);
  EXPECT_EQ(host.span<std::int32_t>()[0], 0);
  EXPECT_NE(host.span<std::int32_t>()[1], 0);
  EXPECT_EQ(host.span<std::int32_t>()[2], 0) << "what was raised is no trouble any more";
  EXPECT_EQ(test::message_of([] { copy_trouble({}, nullptr); }),
            "copy_trouble: the stream is on cpu, where errors are raised at once");
}

TEST(StatusGpu, ARecordServesTheNextStreamEmpty) {
  PUMICE_NEEDS_GPU();
  const StatusRecord record{.claim = 1, .code = kPoisonedInput};
  for (int round = 0; round < 200; ++round) {   // more than a page of records holds
    const Stream stream(test::kGpu);
    stream.wait();
    report(stream, record);
    EXPECT_THROW(stream.wait(), UserError);
  }
}

TEST(RowCountGpu, IsReadBackByACallThatSaysItWaits) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const auto buffer = std::make_shared<Buffer<std::int64_t>>(1, stream);
  const RowCount rows = RowCount::on_device({buffer, buffer->data()}, 100, test::kGpu);
  const auto set = [&](std::int64_t value) {
    copy_async(buffer->data(), test::kGpu, &value, Device{}, sizeof(value), stream);
  };
  EXPECT_THROW((void)rows.host(), InternalError);
  set(42);
  EXPECT_EQ(rows.wait_for_host(stream), 42);
  set(101);
  EXPECT_EQ(test::message_of([&] { (void)rows.wait_for_host(stream); }),
            "101 rows needed, capacity 100: give a larger capacity");
  set(kPoison);
  EXPECT_EQ(test::message_of([&] { (void)rows.wait_for_host(stream); }),
            "these rows follow from others of which more were needed than there was room for");
  EXPECT_EQ(RowCount::exact(7).wait_for_host(stream), 7);
}

}   // namespace
}   // namespace pumice::cuda
