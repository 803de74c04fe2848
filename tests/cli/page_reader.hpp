// What a page holds, read back, and a folder with a sweep to make pages of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <pumice/points/point_cloud.hpp>

#include "program.hpp"

namespace pumice::cli {

inline std::vector<std::uint8_t> decode(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = kDigits.find(c);
    EXPECT_NE(digit, std::string::npos) << c;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> held & 255));
  }
  return bytes;
}

/// What stands between the tags of the script element `id`.
inline std::string element(const std::string& html, const std::string& id) {
  const std::size_t tag = html.find("id=\"" + id + "\"");
  EXPECT_NE(tag, std::string::npos) << id;
  const std::size_t begin = html.find('>', tag) + 1;
  return html.substr(begin, html.find("</script>", begin) - begin);
}

inline nlohmann::json description(const std::string& html) {
  return nlohmann::json::parse(element(html, "scan"));
}

inline PointCloud cloud_of(const std::vector<float>& xyz) {
  PointCloud cloud;
  cloud.positions = Tensor::from<float>(xyz, {static_cast<std::int64_t>(xyz.size() / 3), 3});
  return cloud;
}

class PageFileTest : public test::ProgramTest {
 protected:
  PageFileTest() { run_well({"simulate", "--beams", "32", "--out", sweep_}); }
  std::string sweep_ = path("sweep.ply");
};

}   // namespace pumice::cli
