// Names of devices, as users write them.
#include <pumice/core/device.hpp>

#include <gtest/gtest.h>

#include "support/message_of.hpp"

namespace pumice {
namespace {

TEST(Device, IsNamedAsUsersWriteIt) {
  EXPECT_EQ(parse_device("cpu"), Device{});
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceKind::cuda, 0}));
  EXPECT_EQ(parse_device("cuda:7"), (Device{DeviceKind::cuda, 7}));
  for (const char* name : {"cpu", "cuda:0", "cuda:15"})
    EXPECT_EQ(to_string(parse_device(name)), name);
}

TEST(Device, AnythingElseIsRefusedWithWhatThereIs) {
  for (const char* text : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:+1",
                           "cpu:0", "cuda:99999999999999"}) {
    const std::string said = test::message_of([&] { (void)parse_device(text); });
    EXPECT_EQ(said, "device \"" + std::string(text) + "\": it is cpu, cuda or cuda:<number>");
  }
}

}   // namespace
}   // namespace pumice
