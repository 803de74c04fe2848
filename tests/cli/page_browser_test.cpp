// In a headless browser, where there is one, pages draw their points, turn, switch what they show,
// and say why where they cannot.
// Covers page and what lies in cli/page.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/page.hpp"
#include "cli/terminal.hpp"
#include "page_reader.hpp"

namespace pumice::cli {
namespace {

using test::read_text;
using test::write_text;

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

// Switches between prediction, truth and error, hides a class, and changes the ground.
constexpr std::string_view kJudge = R"(<script>
(() => {
  const canvas = document.getElementById("cloud"), seen = [];
  const look = () => {
    for (const draw of frames.splice(0)) draw(performance.now());
    const rows = [...document.querySelectorAll("#list li")].map((row) => ({
      name: row.querySelector(".name").textContent, points: row.querySelector(".count").textContent,
      shown: row.querySelector("input").checked,
      colour: getComputedStyle(row.querySelector("i")).backgroundColor.match(/\d+/g).map(Number)}));
    const gl = canvas.getContext("webgl2"), pixels = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    const drawn = rows.map(({colour}) => {
      let count = 0;
      for (let i = 0; i < pixels.length; i += 4) {
        if (colour.every((value, c) => Math.abs(value - pixels[i + c]) <= 1)) ++count;
      }
      return count;
    });
    seen.push({rows, drawn, views: !document.getElementById("views").hidden,
               ground: getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number),
               ...canvas.dataset});
  };
  const answer = (name) => document.querySelector(`#answers input[value=${name}]`).click();
  const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  const theme = document.getElementById("theme");
  if (document.documentElement.dataset.theme === "light") theme.click();
  const steps = [() => key("r"), () => answer("truth"), () => document.querySelector("#list input").click(),
    () => answer("error"), () => key("v"), () => document.getElementById("all").click(), () => theme.click(),
    () => key("c")];
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

// Where the notice and the panel are.
constexpr std::string_view kSurveyor = R"(<script>
(() => {
  const place = (id) => {
    const {left, right, top, bottom} = document.getElementById(id).getBoundingClientRect();
    return {left, right, top, bottom};
  };
  const result = document.createElement("pre");
  result.id = "visit";
  result.textContent = JSON.stringify({notice: place("trouble"), panel: place("panel"), points: place("summary"),
                                       width: innerWidth, height: innerHeight});
  document.body.append(result);
})();
</script>
</body>)";

class PageInABrowserTest : public PageFileTest {
 protected:
  /// The document that the page has become.
  std::string open(const std::string& page, std::vector<std::string> options,
                   const std::string& size = "640,480") const {
    options.insert(options.end(), {"--headless", "--no-sandbox", "--disable-gpu",
                                   "--hide-scrollbars", "--disable-dev-shm-usage",
                                   "--user-data-dir=" + path("profile"), "--window-size=" + size,
                                   "--virtual-time-budget=20000", "--dump-dom", "file://" + page});
    return test::run_program(folder_, options, browser_).out;
  }

  /// What a script behind the page wrote into its element "visit".
  nlohmann::json visit(std::string html, std::string_view script, bool drawing,
                       const std::string& size = "640,480") const {
    html.replace(html.rfind("</body>"), 7, script);
    html.replace(html.find("<body>"), 6, kFrames);
    write_text(path("visited.html"), html);
    const std::string document =
        drawing ? open(path("visited.html"),
                       {"--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"},
                       size)
                : open(path("visited.html"), {"--disable-3d-apis"}, size);
    EXPECT_NE(document.find(drawing ? "data-state=\"ready\"" : "data-state=\"failed\""),
              std::string::npos)
        << document.substr(0, 2000);
    const std::size_t begin = document.find("<pre id=\"visit\">");
    EXPECT_NE(begin, std::string::npos);
    if (begin == std::string::npos) return {};
    return nlohmann::json::parse(
        document.substr(begin + 16, document.find("</pre>", begin) - begin - 16));
  }
  std::string browser_ = find_browser();
};

TEST_F(PageInABrowserTest, DrawsThePointsAndFollowsMouseKeysAndClasses) {
  if (browser_.empty()) GTEST_SKIP() << "no browser on PATH: chromium or google-chrome, for pages";
  run_well({"view", sweep_, "--html", path("v.html"), "--colour", "label"});
  const std::string html = read_text(path("v.html"));
  const nlohmann::json scan = description(html);
  const nlohmann::json seen = visit(html, kVisitor, true);
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
  const std::int64_t first = scan["answers"][0]["classes"][0]["points"];
  EXPECT_EQ(seen[6]["points"], std::to_string(scan.at("points").get<std::int64_t>() - first));
  EXPECT_LT(seen[6]["lit"], seen[5]["lit"]);
  EXPECT_EQ(seen[7]["points"], "0");
  EXPECT_EQ(seen[7]["lit"], 0);
  EXPECT_EQ(seen[8]["lit"], seen[5]["lit"]);
  EXPECT_EQ(view(9), view(0));
}

/// As WCAG defines it, of colours of 0 to 255 a channel: 1 to 21.
double contrast(const nlohmann::json& a, const nlohmann::json& b) {
  const auto luminance = [](const nlohmann::json& colour) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double part = colour[c].get<double>() / 255;
      const double linear = part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
      sum += linear * std::array{0.2126, 0.7152, 0.0722}[c];
    }
    return sum;
  };
  const double one = luminance(a), other = luminance(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

TEST_F(PageInABrowserTest, SwitchesBetweenPredictionTruthAndError) {
  if (browser_.empty()) GTEST_SKIP() << "no browser on PATH: chromium or google-chrome, for pages";
  // White and all but black, which one ground or the other would swallow.
  std::vector<float> xyz;
  std::vector<std::int32_t> found, truth;
  for (int i = 0; i < 3000; ++i) {
    xyz.insert(xyz.end(),
               {0.5f * static_cast<float>(i % 60 - 30), 0.5f * static_cast<float>(i / 60 - 25), 0});
    found.push_back(i % 3);
    truth.push_back(i % 3 == 2 || i % 30 == 0 ? -1 : i % 5 == 0 ? 1 : 0);
  }
  PageOptions options;
  options.by = ColourBy::label;
  options.classes = found;
  options.truth = truth;
  options.styles = {{"white", {1, 1, 1}}, {"black", {0.02f, 0.01f, 0.02f}}, {"blue", {0, 0, 1}}};
  const nlohmann::json seen = visit(page(cloud_of(xyz), options), kJudge, true);
  ASSERT_EQ(seen.size(), 8u);
  const auto points = [&](std::size_t step) {
    std::map<std::string, std::string> result;
    for (const nlohmann::json& row : seen[step]["rows"])
      result[row["name"]] = row["points"].get<std::string>() + (row["shown"] ? "" : " hidden");
    return result;
  };
  using Legend = std::map<std::string, std::string>;
  const Legend prediction{{"white", "1,000"}, {"black", "1,000"}, {"blue", "1,000"}};
  EXPECT_EQ(seen[0]["answer"], "prediction");
  EXPECT_EQ(seen[0]["views"], true);
  EXPECT_EQ(points(0), prediction);
  EXPECT_EQ(seen[1]["answer"], "truth");
  EXPECT_EQ(points(1), (Legend{{"white", "1,600"}, {"no class", "1,100"}, {"black", "300"}}));
  EXPECT_EQ(seen[1]["points"], "3000");
  // A class that is hidden is so in prediction and truth; errors are other classes.
  EXPECT_EQ(points(2)["white"], "1,600 hidden");
  EXPECT_EQ(seen[2]["points"], "1400");
  EXPECT_EQ(seen[3]["answer"], "error");
  std::int64_t right = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    right += found[i] == truth[i] ? 1 : 0;
  EXPECT_EQ(points(3)["right"], with_commas(right));
  EXPECT_EQ(points(3)["not compared"], "1,100");
  EXPECT_EQ(seen[3]["points"], "3000");
  EXPECT_EQ(seen[4]["answer"], "prediction");   // V goes round
  EXPECT_EQ(points(4)["white"], "1,000 hidden");
  EXPECT_EQ(points(5), prediction);
  // On either ground every class is seen, in the colour that the legend has.
  EXPECT_NE(seen[5]["ground"], seen[6]["ground"]);
  for (const std::size_t step : {5u, 6u}) {
    for (std::size_t i = 0; i < 3; ++i) {
      const nlohmann::json& row = seen[step]["rows"][i];
      EXPECT_GT(contrast(row["colour"], seen[step]["ground"]), 2.3) << row << " at " << step;
      EXPECT_GT(seen[step]["drawn"][i], 100) << row << " at " << step;
    }
  }
  EXPECT_EQ(seen[7]["colour"], "height");
  EXPECT_EQ(seen[7]["views"], false);
}

TEST_F(PageInABrowserTest, TheNoticeLeavesThePanelFree) {
  if (browser_.empty()) GTEST_SKIP() << "no browser on PATH: chromium or google-chrome, for pages";
  run_well({"view", sweep_, "--html", path("v.html")});
  for (const char* size : {"640,480", "1280,800", "520,700"}) {
    SCOPED_TRACE(size);
    const nlohmann::json seen = visit(read_text(path("v.html")), kSurveyor, false, size);
    const auto at = [&](const char* what, const char* side) {
      return seen.at(what).at(side).get<double>();
    };
    EXPECT_GT(at("notice", "right") - at("notice", "left"), 200);
    EXPECT_GE(at("notice", "left"), 0);
    EXPECT_LE(at("notice", "bottom"), seen.at("height").get<double>());
    EXPECT_GT(at("points", "bottom"), at("points", "top"));
    EXPECT_TRUE(at("notice", "right") <= at("panel", "left") ||
                at("notice", "bottom") <= at("panel", "top"))
        << seen;
  }
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
