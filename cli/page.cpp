// Fills in the page: quantises the points, describes them, and puts everything in its place.
#include "page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>

#include "picture_colours.hpp"
#include "picture_scope.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

using Json = nlohmann::ordered_json;

// 240 MB of text. Browsers' strings end at 2^29 characters; their patience, sooner.
constexpr std::int64_t kMostPoints = 20'000'000;
constexpr int kScaleColours = 32;
// One byte a point; the last one stands for all classes that are rarer still.
constexpr std::size_t kMostClasses = 256;
constexpr double kLevels = 65535;

/// The box that positions are quantised in.
struct Box {
  Point low{};
  Point step{};   // metres; 0 where all points share a coordinate

  std::uint16_t level(double value, std::size_t axis) const {
    if (step[axis] == 0) return 0;
    const double level = std::round((value - low[axis]) / step[axis]);
    return static_cast<std::uint16_t>(std::clamp(level, 0.0, kLevels));
  }
};

/// Drops rows of points that lie farther from the others than 16 times what 98 % of these span: one
/// stray echo must not cost all others their precision. Fewer than 100 points all stay.
void drop_strays(const PointCloud& cloud, std::vector<std::size_t>& rows) {
  if (rows.size() < 100) return;
  std::array<double, 3> low{}, high{};
  double span = 10;   // metres, at least
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<double> values;
    values.reserve(rows.size());
    for (const std::size_t row : rows)
      values.push_back(position(cloud, row)[axis]);
    low[axis] = take_quantile(values, 0.01);
    high[axis] = take_quantile(values, 0.99);
    span = std::max(span, high[axis] - low[axis]);
  }
  std::erase_if(rows, [&](std::size_t row) {
    const Point p = position(cloud, row);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (p[axis] < low[axis] - 16 * span || p[axis] > high[axis] + 16 * span) return true;
    }
    return false;
  });
}

/// Of each of `rows`.
std::vector<std::int32_t> select(std::span<const std::int32_t> numbers,
                                 const std::vector<std::size_t>& rows) {
  std::vector<std::int32_t> result;
  result.reserve(numbers.empty() ? 0 : rows.size());
  for (std::size_t i = 0; i < rows.size() && !numbers.empty(); ++i)
    result.push_back(numbers[rows[i]]);
  return result;
}

/// Positions and intensity of some points.
PointCloud select(const PointCloud& cloud, const std::vector<std::size_t>& rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  PointCloud result;
  result.positions = Tensor({count, 3}, DType::f32);
  if (cloud.intensity.defined()) result.intensity = Tensor({count}, DType::f32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float* from = cloud.positions.data<float>() + 3 * rows[i];
    std::copy(from, from + 3, result.positions.data<float>() + 3 * i);
    if (!cloud.intensity.defined()) continue;
    const float value = cloud.intensity.data<float>()[rows[i]];
    result.intensity.data<float>()[i] = std::isfinite(value) ? value : 0;
  }
  return result;
}

/// What a point is in the view of errors.
enum class Verdict : std::int32_t { right, wrong, not_compared };

std::vector<ClassStyle> verdict_styles() {
  return {{"right", {0.33f, 0.42f, 0.52f}},
          {"wrong", {1.0f, 0.25f, 0.22f}},
          {"not compared", {0.52f, 0.45f, 0.30f}}};
}

std::vector<std::int32_t> verdicts(std::span<const std::int32_t> found,
                                   std::span<const std::int32_t> truth) {
  std::vector<std::int32_t> result;
  result.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Verdict verdict = found[i] < 0 || truth[i] < 0 ? Verdict::not_compared
                            : found[i] == truth[i]       ? Verdict::right
                                                         : Verdict::wrong;
    result.push_back(static_cast<std::int32_t>(verdict));
  }
  return result;
}

Box find_box(const PointCloud& cloud) {
  Box box;
  for (std::size_t axis = 0; axis < 3 && cloud.size() > 0; ++axis) {
    double low = position(cloud, 0)[axis], high = low;
    for (std::size_t row = 1; row < static_cast<std::size_t>(cloud.size()); ++row) {
      low = std::min(low, position(cloud, row)[axis]);
      high = std::max(high, position(cloud, row)[axis]);
    }
    box.low[axis] = low;
    box.step[axis] = (high - low) / kLevels;
  }
  return box;
}

void append_level(std::vector<std::byte>& bytes, std::uint16_t level) {   // little-endian
  bytes.push_back(static_cast<std::byte>(level & 255));
  bytes.push_back(static_cast<std::byte>(level >> 8));
}

std::string hex(Colour colour) {
  const auto byte = [](float part) {
    return static_cast<int>(std::lround(std::clamp(part, 0.0f, 1.0f) * 255));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(colour.r), byte(colour.g), byte(colour.b));
}

/// What the page needs to know, and the points for it to draw.
class PageData {
 public:
  PageData(const PointCloud& cloud, const PageOptions& options) {
    std::vector<std::size_t> rows = finite_points(cloud);
    const std::int64_t not_finite =
        cloud.size() - static_cast<std::int64_t>(rows.size()) + cloud.dropped_points;
    const std::size_t finite = rows.size();
    drop_strays(cloud, rows);
    shown_ = select(cloud, rows);
    box_ = find_box(shown_);
    summarise(not_finite, finite - rows.size());
    describe(options);
    add_positions();
    if (shown_.size() == 0) return;
    add_scale(ColourBy::height, "height");
    if (shown_.intensity.defined()) add_scale(ColourBy::intensity, "intensity");
    if (!options.classes.empty()) {
      const std::vector<std::int32_t> found = select(options.classes, rows);
      add_answer("prediction", found, options.styles);
      if (options.truth.empty()) return;
      const std::vector<std::int32_t> truth = select(options.truth, rows);
      add_answer("truth", truth, options.styles);
      add_answer("error", verdicts(found, truth), verdict_styles());
    } else if (cloud.labels.defined()) {
      const std::vector<std::int32_t> labels = select(cloud.labels.span<std::int32_t>(), rows);
      shown_.labels = Tensor::from<std::int32_t>(labels, {shown_.size()});
      add_answer("label", {}, {});
    }
  }

  const std::string& summary() const { return summary_; }
  /// As JSON that can stand in a script element: nothing in it ends one.
  std::string description() const {
    std::string text;
    for (const char c : description_.dump())
      c == '<' ? text += "\\u003c" : text += c;
    return text;
  }
  std::string positions() const { return base64(positions_); }
  std::string intensity() const { return base64(intensity_); }
  std::string kinds() const { return base64(kinds_); }

 private:
  void summarise(std::int64_t not_finite, std::size_t strays) {
    summary_ = counted(shown_.size(), "point");
    if (not_finite > 0)
      summary_ += fmt::format("; {} more, not finite, left out", with_commas(not_finite));
    if (strays > 0) {
      summary_ += fmt::format("; {} more, far from all others, left out",
                              with_commas(static_cast<long long>(strays)));
    }
  }

  void describe(const PageOptions& options) {
    std::vector<std::size_t> all(static_cast<std::size_t>(shown_.size()));
    for (std::size_t row = 0; row < all.size(); ++row)
      all[row] = row;
    const Scope scope = find_scope(shown_, all);
    const std::array<const char*, 3> names{"height", "intensity", "label"};
    description_ = {{"points", shown_.size()},
                    {"low", box_.low},
                    {"step", box_.step},
                    {"centre", scope.centre},
                    {"reach", scope.reach},
                    {"ring", scope.ring},
                    {"colour", names.at(static_cast<std::size_t>(options.by))},
                    {"scales", Json::object()},
                    {"answers", Json::array()}};
  }

  void add_positions() {
    positions_.reserve(static_cast<std::size_t>(shown_.size()) * 6);
    for (std::size_t row = 0; row < static_cast<std::size_t>(shown_.size()); ++row) {
      const Point p = position(shown_, row);
      for (std::size_t axis = 0; axis < 3; ++axis)
        append_level(positions_, box_.level(p[axis], axis));
    }
  }

  void add_scale(ColourBy by, const char* name) {
    const PointColours paint = colour_points(shown_, {}, by);
    Json colours = Json::array();
    for (int i = 0; i < kScaleColours; ++i)
      colours.push_back(hex(scale_colour(by, i / (kScaleColours - 1.0))));
    description_["scales"][name] = {{"quantity", paint.quantity},
                                    {"low", paint.low},
                                    {"high", paint.high},
                                    {"colours", colours}};
    if (by != ColourBy::intensity) return;   // heights are among the positions
    const double extent = std::max(paint.high - paint.low, 1e-6);
    for (const float value : shown_.intensity.span<float>()) {
      const double part = (static_cast<double>(value) - paint.low) / extent;
      append_level(intensity_,
                   static_cast<std::uint16_t>(std::lround(std::clamp(part, 0.0, 1.0) * kLevels)));
    }
  }

  /// One way to see the classes of points: `numbers` as `styles` show them, or the cloud's labels
  /// where there are none.
  void add_answer(const char* name, std::span<const std::int32_t> numbers,
                  std::span<const ClassStyle> styles) {
    std::vector<LegendEntry> classes =
        colour_points(shown_, numbers, ColourBy::label, styles).classes;
    if (numbers.empty()) numbers = shown_.labels.span<std::int32_t>();
    std::map<std::int32_t, std::size_t> kind;
    for (std::size_t i = 0; i < classes.size(); ++i)
      kind[classes[i].number] = std::min(i, kMostClasses - 1);
    if (classes.size() > kMostClasses) {
      LegendEntry& rest = classes[kMostClasses - 1];
      rest.name =
          with_commas(static_cast<long long>(classes.size() - kMostClasses + 1)) + " rarer classes";
      rest.colour = {0.6f, 0.6f, 0.6f};
      for (std::size_t i = kMostClasses; i < classes.size(); ++i)
        rest.points += classes[i].points;
      classes.resize(kMostClasses);
    }
    Json list = Json::array();
    for (const LegendEntry& entry : classes) {
      list.push_back({{"number", entry.number},
                      {"name", entry.name},
                      {"colour", hex(entry.colour)},
                      {"points", entry.points}});
    }
    description_["answers"].push_back({{"name", name}, {"classes", std::move(list)}});
    for (const std::int32_t number : numbers)
      kinds_.push_back(static_cast<std::byte>(kind.at(number)));
  }

  PointCloud shown_;
  Box box_;
  std::string summary_;
  Json description_;
  std::vector<std::byte> positions_;
  std::vector<std::byte> intensity_;
  std::vector<std::byte> kinds_;   // a byte a point, answer after answer
};

std::string note_paragraphs(const std::vector<std::string>& notes) {
  std::string html;
  for (const std::string& note : notes)
    html += "<p class=\"note\">" + html_text(note) + "</p>\n";
  return html;
}

std::string part(std::string_view name) {
  std::string text;
  for (const std::string_view piece : page_part(name))
    text += piece;
  PUMICE_ENSURES(!text.empty(), "the program was built without ", std::string(name));
  return text;
}

/// Replaces each {{name}} of `text`; what is put in is not looked at again.
std::string fill_in(std::string_view text, const std::map<std::string_view, std::string>& values) {
  std::string result;
  for (;;) {
    const std::size_t begin = text.find("{{");
    result += text.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const std::size_t end = text.find("}}", begin);
    PUMICE_ENSURES(end != std::string_view::npos, "the page has a {{ without }}");
    const auto value = values.find(text.substr(begin + 2, end - begin - 2));
    PUMICE_ENSURES(value != values.end(), "the page asks for ",
                   std::string(text.substr(begin, end + 2 - begin)));
    result += value->second;
    text.remove_prefix(end + 2);
  }
}

}   // namespace

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < here ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j)
      text += j <= here ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string html_text(std::string_view text) {
  // A round trip through JSON replaces what is no UTF-8.
  const std::string valid =
      Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
          .get<std::string>();
  std::string result;
  for (const char c : valid) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          result += "\xef\xbf\xbd";
        else
          result += c;
    }
  }
  return result;
}

std::string page(const PointCloud& cloud, const PageOptions& options) {
  PUMICE_EXPECTS(cloud.size() <= kMostPoints, "a page shows up to ", with_commas(kMostPoints),
                 " points, not ", with_commas(cloud.size()), "; draw a picture of them instead");
  PUMICE_EXPECTS(options.by != ColourBy::intensity || cloud.intensity.defined(),
                 "colour = intensity, but the scan has none: colour by height");
  PUMICE_EXPECTS(
      options.by != ColourBy::label || cloud.labels.defined() || !options.classes.empty(),
      "colour = label, but the scan has none: colour by height or intensity");
  PUMICE_EXPECTS(options.classes.empty() || std::ssize(options.classes) == cloud.size(),
                 "classes has ", counted(std::ssize(options.classes), "entry", "entries"), " for ",
                 counted(cloud.size(), "point"), ": give one a point");
  PUMICE_EXPECTS(options.truth.empty() || options.truth.size() == options.classes.size(),
                 "truth has ", counted(std::ssize(options.truth), "entry", "entries"), " for ",
                 counted(std::ssize(options.classes), "class", "classes"), ": give one a point");
  const PageData data(cloud, options);
  return fill_in(part("page.html"),
                 {{"title", html_text(options.name)},
                  {"version", html_text(options.version)},
                  {"summary", html_text(data.summary())},
                  {"notes", note_paragraphs(options.notes)},
                  {"style", part("page.css")},
                  {"scan", data.description()},
                  {"positions", data.positions()},
                  {"intensity", data.intensity()},
                  {"kinds", data.kinds()},
                  {"script", part("view.js") + part("draw.js") + part("panel.js")}});
}

void write_page(const std::filesystem::path& path, const std::string& html) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(html)));
  file.commit();
}

}   // namespace pumice::cli
