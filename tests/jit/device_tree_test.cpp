// The embedded headers are the files of device/.
#include "jit/device_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

namespace pumice::jit {
namespace {

TEST(DeviceTree, IsTheFolderByteForByte) {
  const std::filesystem::path root = std::filesystem::path(PUMICE_SOURCE_DIR) / "device";
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".h") || name.ends_with("_host.h")) continue;   // those are for the host
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), root).generic_string()] = {
        std::istreambuf_iterator<char>(file), {}};
  }
  ASSERT_GE(files.size(), 4u);
  for (const DeviceHeader& header : device_tree()) {
    ASSERT_TRUE(files.contains(header.name)) << header.name << " is embedded, but no file";
    EXPECT_TRUE(files[header.name] == header.text) << header.name << " is not the file's text";
  }
  EXPECT_EQ(device_tree().size(), files.size());
}

TEST(DeviceTree, IsInOneOrderEverywhere) {
  const auto& tree = device_tree();
  EXPECT_TRUE(std::is_sorted(tree.begin(), tree.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

}   // namespace
}   // namespace pumice::jit
