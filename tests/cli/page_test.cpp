// Pages are whole, hold the points they were made of, and let no name of a file break them.
#include "cli/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/points/simulate.hpp>

#include "page_reader.hpp"

namespace pumice::cli {
namespace {

std::vector<std::uint16_t> levels(const std::string& html, const std::string& id) {
  const std::vector<std::uint8_t> bytes = decode(element(html, id));
  EXPECT_EQ(bytes.size() % 2, 0u);
  std::vector<std::uint16_t> result;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
    result.push_back(static_cast<std::uint16_t>(bytes[i] | bytes[i + 1] << 8));
  return result;
}

/// The positions that a page shows, each in metres.
std::vector<std::array<double, 3>> positions(const std::string& html) {
  const nlohmann::json scan = description(html);
  const std::vector<std::uint16_t> values = levels(html, "positions");
  EXPECT_EQ(values.size(), 3 * scan.at("points").get<std::size_t>());
  std::vector<std::array<double, 3>> result(values.size() / 3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[i / 3][i % 3] =
        scan["low"][i % 3].get<double>() + scan["step"][i % 3].get<double>() * values[i];
  }
  return result;
}

/// Says what is wrong with a page: tags that do not close in turn, attributes without quotes, ids
/// that are there twice or missing, anything fetched from elsewhere.
std::string fault(const std::string& html) {
  static const std::set<std::string> kVoid{"meta", "input", "br", "link", "img"};
  static const std::regex kAttributes(R"((\s+[a-z-]+(="[^"<]*")?)*\s*)");
  static const std::regex kId(R"re(\sid="([^"]*)")re");
  if (!html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">")) return "no doctype";
  std::vector<std::string> open;
  std::set<std::string> ids;
  std::size_t at = std::string("<!DOCTYPE html>").size();
  while ((at = html.find('<', at)) != std::string::npos) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1))
        return "</" + tag.substr(1) + "> in between";
      open.pop_back();
      continue;
    }
    const std::size_t length = std::min(tag.find_first_of(" \n"), tag.size());
    const std::string name = tag.substr(0, length), attributes = tag.substr(length);
    if (!std::regex_match(attributes, kAttributes)) return "attributes: " + tag;
    for (const char* fetching : {" src=", " href=", " srcset=", " action=", " data="}) {
      if (attributes.find(fetching) != std::string::npos) return "fetches: " + tag;
    }
    std::smatch id;
    if (std::regex_search(attributes, id, kId) && !ids.insert(id[1]).second) return "twice: " + tag;
    if (!kVoid.contains(name)) open.push_back(name);
    if (name == "script" || name == "style") at = html.find("</" + name + ">", at);
  }
  if (!open.empty()) return "<" + open.back() + "> stays open";
  static const std::regex kNamed(
      R"re((?:element\(|ById\(|decode\(| for=|labelledby=|describedby=|controls=)"([\w-]+)")re");
  for (std::sregex_iterator found(html.begin(), html.end(), kNamed), none; found != none; ++found) {
    if (!ids.contains((*found)[1])) return "nothing is called " + (*found)[1].str();
  }
  for (const char* far : {"http:", "https:", "url(", "@import", "fetch(", "import("}) {
    if (html.find(far) != std::string::npos) return std::string("names another place: ") + far;
  }
  return {};
}

TEST(Page, HoldsThePointsItWasMadeOf) {
  const PointCloud cloud = simulate({.seed = 3});
  const std::string html = page(cloud, {.name = "sweep.ply", .by = ColourBy::label});
  EXPECT_EQ(fault(html), "");
  EXPECT_LT(html.size(), static_cast<std::size_t>(cloud.size()) * 13 + 60'000);
  const nlohmann::json scan = description(html);
  EXPECT_EQ(scan.at("points"), cloud.size());
  EXPECT_EQ(scan.at("colour"), "label");
  const auto shown = positions(html);
  ASSERT_EQ(shown.size(), static_cast<std::size_t>(cloud.size()));
  double worst = 0;   // in halves of a step
  for (std::size_t i = 0; i < shown.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double error = std::abs(
          shown[i][axis] - static_cast<double>(cloud.positions.data<float>()[3 * i + axis]));
      worst = std::max(worst, 2 * error / scan["step"][axis].get<double>());
    }
  }
  EXPECT_LE(worst, 1 + 1e-9);
  EXPECT_LT(scan["step"][0].get<double>(), 0.005);

  const std::vector<std::uint16_t> intensity = levels(html, "intensity");
  const nlohmann::json scale = scan["scales"]["intensity"];
  const double low = scale["low"], high = scale["high"];
  ASSERT_EQ(intensity.size(), shown.size());
  for (std::size_t i = 0; i < shown.size(); i += 17) {
    const double expected =
        std::clamp(static_cast<double>(cloud.intensity.data<float>()[i]), low, high);
    EXPECT_NEAR(low + (high - low) * intensity[i] / 65535, expected, (high - low) / 65535) << i;
  }

  const std::vector<std::uint8_t> kinds = decode(element(html, "kinds"));
  ASSERT_EQ(kinds.size(), shown.size());
  std::vector<std::int64_t> counts(scan["answers"][0]["classes"].size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ASSERT_LT(kinds[i], counts.size());
    ++counts[kinds[i]];
    EXPECT_EQ(scan["answers"][0]["classes"][kinds[i]]["name"],
              label_name(cloud.labels.data<std::int32_t>()[i]));
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(scan["answers"][0]["classes"][i]["points"], counts[i]);
}

TEST(Page, WhatAScanLacksIsNotOffered) {
  const std::string html = page(cloud_of({0, 0, 0, 1, 2, 3}), {.name = "two.npy"});
  EXPECT_EQ(fault(html), "");
  const nlohmann::json scan = description(html);
  EXPECT_TRUE(scan["scales"].contains("height"));
  EXPECT_FALSE(scan["scales"].contains("intensity"));
  EXPECT_TRUE(scan["answers"].empty());
  EXPECT_EQ(element(html, "intensity"), "");
  EXPECT_EQ(element(html, "kinds"), "");
  EXPECT_THROW(page(cloud_of({0, 0, 0}), {.by = ColourBy::intensity}), UserError);
  EXPECT_THROW(page(cloud_of({0, 0, 0}), {.by = ColourBy::label}), UserError);
}

TEST(Page, NoneOneAndFarPointsArePagesToo) {
  EXPECT_EQ(fault(page(cloud_of({}), {})), "");
  EXPECT_TRUE(positions(page(cloud_of({}), {})).empty());
  const auto one = positions(page(cloud_of({1e6f, -1e6f, 5}), {}));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0], (std::array<double, 3>{1e6, -1e6, 5}));
}

TEST(Page, StrayPointsCostTheOthersNoPrecision) {
  std::vector<float> xyz;
  for (int i = 0; i < 1000; ++i) {
    for (const int step : {7, 11, 13})
      xyz.push_back(static_cast<float>(i * step % 101) * 0.1f);
  }
  xyz.insert(xyz.end(), {1e30f, 0, 0, 0, -1e6f, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0,
                         std::numeric_limits<float>::infinity(), 0, 0});
  const std::string html = page(cloud_of(xyz), {.name = "stray"});
  const auto shown = positions(html);
  ASSERT_EQ(shown.size(), 1000u);
  EXPECT_NEAR(shown[999][0], static_cast<double>(xyz[3 * 999]), 1e-3);
  EXPECT_NE(html.find("1,000 points; 2 more, not finite, left out; 2 more, far from all others"),
            std::string::npos);
}

TEST(Page, ManyClassesEndInOneForTheRest) {
  std::vector<float> xyz;
  std::vector<std::int32_t> labels;
  for (int label = 0; label < 1000; ++label) {
    for (int i = 0; i <= (label < 10 ? 5 : 0); ++i) {
      xyz.insert(xyz.end(), {static_cast<float>(label), static_cast<float>(i), 0});
      labels.push_back(label * 1000 - 7);
    }
  }
  PointCloud cloud = cloud_of(xyz);
  cloud.labels = Tensor::from<std::int32_t>(labels, {cloud.size()});
  const std::string html = page(cloud, {.by = ColourBy::label});
  const nlohmann::json classes = description(html)["answers"][0]["classes"];
  ASSERT_EQ(classes.size(), 256u);
  EXPECT_EQ(classes[0]["points"], 6);
  EXPECT_EQ(classes[255]["name"], "745 rarer classes");
  EXPECT_EQ(classes[255]["points"], 745);
  const std::vector<std::uint8_t> kinds = decode(element(html, "kinds"));
  EXPECT_EQ(std::ranges::count(kinds, 255), 745);
}

TEST(Page, PredictionTruthAndErrorAreThreeViewsOfThePoints) {
  const PointCloud cloud = cloud_of({0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0, 5, 0, 0});
  const std::vector<std::int32_t> found{0, 0, 1, 1, -1, 0}, truth{0, 1, 1, 1, 0, -1};
  PageOptions options;
  options.by = ColourBy::label;
  options.classes = found;
  options.truth = truth;
  options.styles = {{"road", {1, 0, 1}}, {"car", {0, 0, 1}}};
  const std::string html = page(cloud, options);
  EXPECT_EQ(fault(html), "");
  const nlohmann::json answers = description(html)["answers"];
  ASSERT_EQ(answers.size(), 3u);
  const std::vector<std::uint8_t> kinds = decode(element(html, "kinds"));
  ASSERT_EQ(kinds.size(), 3 * found.size());
  const std::vector<std::string> expected[] = {
      {"road", "road", "car", "car", "no class", "road"},
      {"road", "car", "car", "car", "road", "no class"},
      {"right", "wrong", "right", "right", "not compared", "not compared"}};
  const char* names[] = {"prediction", "truth", "error"};
  for (std::size_t a = 0; a < 3; ++a) {
    EXPECT_EQ(answers[a]["name"], names[a]);
    std::map<std::string, std::int64_t> counts;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const nlohmann::json& kind = answers[a]["classes"][kinds[a * found.size() + i]];
      EXPECT_EQ(kind["name"], expected[a][i]) << names[a] << ' ' << i;
      ++counts[expected[a][i]];
    }
    for (const nlohmann::json& kind : answers[a]["classes"])
      EXPECT_EQ(kind["points"], counts[kind["name"].get<std::string>()]) << names[a];
    EXPECT_EQ(answers[a]["classes"].size(), counts.size());
  }
  // A class has one number and one colour in prediction and truth.
  for (const nlohmann::json& one : answers[0]["classes"]) {
    for (const nlohmann::json& other : answers[1]["classes"]) {
      if (one["name"] != other["name"]) continue;
      EXPECT_EQ(one["number"], other["number"]);
      EXPECT_EQ(one["colour"], other["colour"]);
    }
  }
  options.truth = std::span(truth).first(3);
  EXPECT_THROW(page(cloud, options), UserError);
}

TEST(Page, NotesStandBelowTheName) {
  PageOptions options;
  options.notes = {"Untrained.", "<script>alert(1)</script>\n"};
  const std::string html = page(cloud_of({0, 0, 0}), options);
  EXPECT_EQ(fault(html), "");
  EXPECT_NE(html.find("<p class=\"note\">Untrained.</p>\n<p class=\"note\">&lt;script&gt;"),
            std::string::npos);
}

TEST(Page, NamesOfFilesAreTextAndNothingElse) {
  const std::string before = page(cloud_of({0, 0, 0}), {.name = "plain"});
  for (const std::string& name :
       {std::string("</title><script>alert(1)</script>"), std::string("\" onload=\"alert(1)"),
        std::string("{{scan}}{{script}}.bin"), std::string("a&b<!--'.bin"),
        std::string("\xff\xfe\xc0\x80 \x01\n\x7f.bin"),
        std::string("stra\xc3\x9f"
                    "e.bin")}) {
    SCOPED_TRACE(name);
    const std::string html = page(cloud_of({0, 0, 0}), {.name = name});
    EXPECT_EQ(fault(html), "");
    EXPECT_EQ(std::ranges::count(html, '<'), std::ranges::count(before, '<'));
    EXPECT_EQ(description(html), description(before));
    EXPECT_NE(html.find("<bdi>" + html_text(name) + "</bdi>"), std::string::npos);
  }
  EXPECT_EQ(html_text("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  EXPECT_EQ(html_text("stra\xc3\x9f"
                      "e"),
            "stra\xc3\x9f"
            "e");
  EXPECT_EQ(html_text("\x01\xff"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Page, Base64IsThatOfTheStandard) {
  const auto encoded = [](std::string_view text) { return base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xef\xbe"), "/+++");
}

using test::read_text;
using test::write_text;

TEST_F(PageFileTest, PictureAndPageComeTogetherOrAlone) {
  const nlohmann::json both = run_json(
      {"view", sweep_, "--picture", path("v.png"), "--html", path("v.html"), "--colour", "label"});
  EXPECT_EQ(both.at("picture"), path("v.png"));
  EXPECT_EQ(both.at("page"), path("v.html"));
  EXPECT_EQ(fault(read_text(path("v.html"))), "");
  EXPECT_EQ(description(read_text(path("v.html"))).at("colour"), "label");
  std::filesystem::remove(path("v.png"));
  const test::Outcome alone = run_well({"view", sweep_, "--html", path("v.HTML")});
  EXPECT_TRUE(alone.out.starts_with("page of ")) << alone.out;
  EXPECT_EQ(description(read_text(path("v.HTML"))).at("colour"), "height");
  EXPECT_FALSE(std::filesystem::exists(path("v.png")));
}

TEST_F(PageFileTest, WhatAPageCannotBeIsSaid) {
  const std::string before = read_text(sweep_);
  expect_refusal({"view", sweep_}, {"--picture", "--html"});
  expect_refusal({"view", sweep_, "--html", ""}, {"--html", "empty"});
  expect_refusal({"view", sweep_, "--html", path("v.htm")}, {"--html", "v.htm", ".html"});
  expect_refusal({"view", sweep_, "--html", sweep_}, {sweep_, "read and written over"});
  expect_refusal({"view", sweep_, "--html", path("no/v.html")}, {"no/v.html"});
  expect_refusal({"view", sweep_, "--html", path("v.html"), "--size", "640", "480"},
                 {"--size", "--picture"});
  expect_refusal({"view", sweep_, "--html", path("v.html"), "--picture", path("v.html")},
                 {"v.html", "twice"});
  expect_refusal({"view", sweep_, "--html", path("v.html"), "--picture", path("v.jpg")},
                 {"v.jpg", ".png"});
  test::write_points(path("bare.ply"), test::slope(2, 2));
  expect_refusal({"view", path("bare.ply"), "--html", path("v.html"), "--colour", "label"},
                 {"label"});
  EXPECT_FALSE(std::filesystem::exists(path("v.html")));
  EXPECT_EQ(read_text(sweep_), before);
}

}   // namespace
}   // namespace pumice::cli
