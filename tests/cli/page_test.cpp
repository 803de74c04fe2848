// Pages are whole, hold the points they were made of, and let no name of a file break them. In a
// headless browser, where there is one, they draw these points and turn.
#include "cli/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/points/simulate.hpp>

#include "program.hpp"

namespace pumice::cli {
namespace {

std::vector<std::uint8_t> decode(const std::string& text) {
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
std::string element(const std::string& html, const std::string& id) {
  const std::size_t tag = html.find("id=\"" + id + "\"");
  EXPECT_NE(tag, std::string::npos) << id;
  const std::size_t begin = html.find('>', tag) + 1;
  return html.substr(begin, html.find("</script>", begin) - begin);
}

nlohmann::json description(const std::string& html) {
  return nlohmann::json::parse(element(html, "scan"));
}

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

PointCloud cloud_of(const std::vector<float>& xyz) {
  PointCloud cloud;
  cloud.positions = Tensor::from<float>(xyz, {static_cast<std::int64_t>(xyz.size() / 3), 3});
  return cloud;
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
  std::vector<std::int64_t> counts(scan["classes"].size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ASSERT_LT(kinds[i], counts.size());
    ++counts[kinds[i]];
    EXPECT_EQ(scan["classes"][kinds[i]]["name"], label_name(cloud.labels.data<std::int32_t>()[i]));
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    EXPECT_EQ(scan["classes"][i]["points"], counts[i]);
}

TEST(Page, WhatAScanLacksIsNotOffered) {
  const std::string html = page(cloud_of({0, 0, 0, 1, 2, 3}), {.name = "two.npy"});
  EXPECT_EQ(fault(html), "");
  const nlohmann::json scan = description(html);
  EXPECT_TRUE(scan["scales"].contains("height"));
  EXPECT_FALSE(scan["scales"].contains("intensity"));
  EXPECT_TRUE(scan["classes"].empty());
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
  const nlohmann::json classes = description(html)["classes"];
  ASSERT_EQ(classes.size(), 256u);
  EXPECT_EQ(classes[0]["points"], 6);
  EXPECT_EQ(classes[255]["name"], "745 rarer classes");
  EXPECT_EQ(classes[255]["points"], 745);
  const std::vector<std::uint8_t> kinds = decode(element(html, "kinds"));
  EXPECT_EQ(std::ranges::count(kinds, 255), 745);
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

class PageFileTest : public test::ProgramTest {
 protected:
  PageFileTest() { run_well({"simulate", "--beams", "32", "--out", sweep_}); }
  std::string sweep_ = path("sweep.ply");
};

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

/// The first of the browsers' usual names on PATH; empty where there is none.
std::string find_browser() {
  const char* folders = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"}) {
    std::istringstream list(folders == nullptr ? "" : folders);
    for (std::string folder; std::getline(list, folder, ':');) {
      if (::access((folder + '/' + name).c_str(), X_OK) == 0) return folder + '/' + name;
    }
  }
  return {};
}

// Put into a page, before its own script: frames come when they are asked for, so that nothing
// waits, and a slow machine sees what a fast one does.
constexpr std::string_view kFrames = R"(<body>
<script>
const frames = [];
window.requestAnimationFrame = (draw) => frames.push(draw);
</script>)";

// And behind it: drags, turns classes off, and writes what it saw into the document.
constexpr std::string_view kVisitor = R"(<script>
(() => {
  const canvas = document.getElementById("cloud"), seen = [];
  const look = () => {
    for (const draw of frames.splice(0)) draw(performance.now());
    const gl = canvas.getContext("webgl2"), pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    const colours = new Set();
    let lit = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const [red, green, blue] = pixels.subarray(i, i + 3);
      colours.add(red << 16 | green << 8 | blue);
      if (Math.max(red, green, blue) - Math.min(red, green, blue) > 40) ++lit;
    }
    seen.push({lit, colours: colours.size, ...canvas.dataset});
  };
  const pointer = (type, x, y, more) => (type === "pointerdown" ? canvas : window).dispatchEvent(
    new PointerEvent(type, {pointerId: 1, clientX: x, clientY: y, buttons: 1, bubbles: true, ...more}));
  const drag = (more) => {
    pointer("pointerdown", 300, 300, more);
    pointer("pointermove", 340, 320, more);
    pointer("pointerup", 340, 320, more);
    pointer("pointermove", 500, 500, more);
  };
  const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  const steps = [() => key("r"), () => drag({}), () => drag({shiftKey: true}),
    () => canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -300, clientX: 300, clientY: 300})),
    () => key("ArrowLeft"), () => key("c"), () => document.querySelector("#list input").click(),
    () => document.getElementById("none").click(), () => document.getElementById("all").click(), () => key("r")];
  for (const step of steps) {
    step();
    look();
  }
  const result = document.createElement("pre");
  result.id = "visit";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
})();
</script>
</body>)";

class PageInABrowserTest : public PageFileTest {
 protected:
  /// The document that the page has become.
  std::string open(const std::string& page, std::vector<std::string> options) const {
    options.insert(options.end(), {"--headless", "--no-sandbox", "--disable-gpu",
                                   "--hide-scrollbars", "--disable-dev-shm-usage",
                                   "--user-data-dir=" + path("profile"), "--window-size=640,480",
                                   "--virtual-time-budget=20000", "--dump-dom", "file://" + page});
    return test::run_program(folder_, options, browser_).out;
  }
  std::string browser_ = find_browser();
};

TEST_F(PageInABrowserTest, DrawsThePointsAndFollowsMouseKeysAndClasses) {
  if (browser_.empty()) GTEST_SKIP() << "no browser on PATH: chromium or google-chrome, for pages";
  run_well({"view", sweep_, "--html", path("v.html"), "--colour", "label"});
  std::string html = read_text(path("v.html"));
  const nlohmann::json scan = description(html);
  html.replace(html.rfind("</body>"), 7, kVisitor);
  html.replace(html.find("<body>"), 6, kFrames);
  write_text(path("visited.html"), html);
  const std::string document =
      open(path("visited.html"),
           {"--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"});
  ASSERT_NE(document.find("data-state=\"ready\""), std::string::npos) << document.substr(0, 2000);
  const std::size_t begin = document.find("<pre id=\"visit\">") + 16;
  ASSERT_NE(begin, std::string::npos + 16);
  const nlohmann::json seen =
      nlohmann::json::parse(document.substr(begin, document.find("</pre>", begin) - begin));
  ASSERT_EQ(seen.size(), 10u);
  const auto view = [&](std::size_t step) {
    std::istringstream text(seen[step].at("view").get<std::string>());
    std::vector<double> values;
    for (double value = 0; text >> value;)
      values.push_back(value);
    EXPECT_EQ(values.size(), 6u);
    return values;
  };
  const auto all = std::to_string(scan.at("points").get<std::int64_t>());
  EXPECT_EQ(seen[0]["points"], all);
  EXPECT_EQ(seen[0]["colour"], "label");
  EXPECT_GT(seen[0]["lit"], 5000);
  EXPECT_GT(seen[0]["colours"], 100);
  EXPECT_NEAR(view(1)[0], view(0)[0] - 0.006 * 40, 1e-3);   // drag: yaw and pitch alone
  EXPECT_NEAR(view(1)[1], view(0)[1] + 0.006 * 20, 1e-3);
  EXPECT_EQ(view(1)[2], view(0)[2]);
  EXPECT_EQ(view(1)[3], view(0)[3]);
  EXPECT_EQ(view(2)[0], view(1)[0]);   // Shift and drag: the target alone
  EXPECT_NE(view(2)[3], view(1)[3]);
  EXPECT_LT(view(3)[2], 0.8 * view(2)[2]);   // the wheel
  EXPECT_NEAR(view(4)[0], view(3)[0] + 0.08, 1e-3);
  EXPECT_EQ(seen[5]["colour"], "height");
  const std::int64_t first = scan["classes"][0]["points"];
  EXPECT_EQ(seen[6]["points"], std::to_string(scan.at("points").get<std::int64_t>() - first));
  EXPECT_LT(seen[6]["lit"], seen[5]["lit"]);
  EXPECT_EQ(seen[7]["points"], "0");
  EXPECT_EQ(seen[7]["lit"], 0);
  EXPECT_EQ(seen[8]["lit"], seen[5]["lit"]);
  EXPECT_EQ(view(9), view(0));
}

TEST_F(PageInABrowserTest, SaysSoWhereThereIsNoWebGL2) {
  if (browser_.empty()) GTEST_SKIP() << "no browser on PATH: chromium or google-chrome, for pages";
  run_well({"view", sweep_, "--html", path("v.html")});
  const std::string document = open(path("v.html"), {"--disable-3d-apis"});
  EXPECT_NE(document.find("data-state=\"failed\""), std::string::npos) << document.substr(0, 2000);
  EXPECT_NE(document.find("<p id=\"trouble\" role=\"alert\">This browser does not offer WebGL2"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::cli
