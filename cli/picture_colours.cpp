// Scales for height and intensity, and colours of classes.
#include "picture_colours.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <pumice/core/error.hpp>
#include <pumice/points/simulate.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

constexpr Colour rgb(int code) {
  return {static_cast<float>((code >> 16) & 255) / 255.0f,
          static_cast<float>((code >> 8) & 255) / 255.0f, static_cast<float>(code & 255) / 255.0f};
}

// Dark to light throughout, so that the scales also read in grey.
constexpr Colour kHeightStops[] = {rgb(0x2b3a8f), rgb(0x1f6fc4), rgb(0x17a2b8), rgb(0x2fbf71),
                                   rgb(0xb5d33d), rgb(0xf9c846), rgb(0xff8c42), rgb(0xffe0d0)};
constexpr Colour kIntensityStops[] = {rgb(0x3b1f5e), rgb(0x7a2a7c), rgb(0xc03a6b),
                                      rgb(0xf2694a), rgb(0xfdb44b), rgb(0xfff7c8)};

struct LabelColour {
  std::int32_t label;
  int code;
};
// In the spirit of SemanticKITTI's own: roads magenta, cars blue, leaves green, houses yellow.
constexpr LabelColour kLabelColours[] = {
    {0, 0x5a5f6b},   {1, 0xb03030},   {10, 0x5fa8ff},  {11, 0x7be3ea},  {13, 0x3f7bff},
    {15, 0x2f5ad8},  {16, 0x4a63d6},  {18, 0x8e5bff},  {20, 0x6d7bff},  {30, 0xff3b3b},
    {31, 0xff4fd0},  {32, 0xa83271},  {40, 0xc65bd6},  {44, 0xffa3ff},  {48, 0x7a3f9d},
    {49, 0xb0316e},  {50, 0xffd23f},  {51, 0xff8a3d},  {52, 0xffab5e},  {60, 0xf4f4ff},
    {70, 0x2fae4e},  {71, 0xa5622a},  {72, 0x9fe870},  {80, 0xfff3a6},  {81, 0xff2f2f},
    {99, 0x50ffd0},  {252, 0x38d0ff}, {253, 0xff7ad9}, {254, 0xff5f5f}, {255, 0xc05a9e},
    {256, 0x6f7fe0}, {257, 0x5b8cff}, {258, 0xb18cff}, {259, 0x8f9bff},
};

Colour along(std::span<const Colour> stops, double part) {
  const double at = std::clamp(part, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  return mix(stops[stop], stops[stop + 1], static_cast<float>(at - static_cast<double>(stop)));
}

/// The value that `part` of the finite ones lie below; 0 when there are none.
double quantile(std::vector<float> values, double part) {
  std::erase_if(values, [](float value) { return !std::isfinite(value); });
  if (values.empty()) return 0;
  const auto rank =
      static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(rank)]);
}

PointColours by_scale(std::vector<float> values, ColourBy by) {
  PointColours result;
  const bool height = by == ColourBy::height;
  result.quantity = height ? "height, m" : "intensity";
  result.low = quantile(values, 0.005);
  result.high = quantile(values, height ? 0.99 : 0.98);
  const double extent = std::max(result.high - result.low, 1e-6);
  result.colours.reserve(values.size());
  for (const float value : values) {
    result.colours.push_back(scale_colour(by, (static_cast<double>(value) - result.low) / extent));
  }
  return result;
}

constexpr Colour kNoClass = rgb(0x5a5f6b);

ClassStyle label_style(std::int32_t number) {
  return {label_name(number), label_colour(number)};
}

/// The style of a class that a network gives.
ClassStyle class_style(std::int32_t number, std::span<const ClassStyle> styles) {
  if (styles.empty()) return {"class " + std::to_string(number), class_colour(number)};
  const auto index = static_cast<std::size_t>(number);   // a negative one lies past the end
  return index < styles.size() ? styles[index] : ClassStyle{"no class", kNoClass};
}

/// `style` gives name and colour of a number.
template <class Style>
PointColours by_class(std::span<const std::int32_t> classes, const Style& style) {
  std::map<std::int32_t, LegendEntry> seen;
  for (const std::int32_t number : classes)
    ++seen[number].points;
  for (auto& [number, entry] : seen) {
    entry.number = number;
    ClassStyle shown = style(number);
    entry.colour = shown.colour;
    entry.name = std::move(shown.name);
  }
  PointColours result;
  result.colours.reserve(classes.size());
  for (const std::int32_t number : classes)
    result.colours.push_back(seen[number].colour);
  for (const auto& [number, entry] : seen)
    result.classes.push_back(entry);
  std::ranges::stable_sort(result.classes, std::ranges::greater{}, &LegendEntry::points);
  return result;
}

}   // namespace

std::vector<ClassStyle> class_styles(const nn::ModelCard& card) {
  std::vector<ClassStyle> styles;
  for (std::size_t i = 0; i < card.classes.size(); ++i) {
    ClassStyle& style = styles.emplace_back();
    style.name = printable(card.classes[i]);
    if (!card.colours.empty()) {
      const auto [red, green, blue] = card.colours[i];
      style.colour = rgb(red << 16 | green << 8 | blue);
    } else if (!card.labels.empty() && !card.labels[i].empty()) {
      style.colour = label_colour(card.labels[i].front());
    } else {
      style.colour = class_colour(static_cast<std::int32_t>(i));
    }
  }
  return styles;
}

ColourBy parse_colour_by(const std::string& name) {
  if (name == "height") return ColourBy::height;
  if (name == "intensity") return ColourBy::intensity;
  if (name == "label") return ColourBy::label;
  detail::raise_user("colour = ", name, ": choose height, intensity or label");
}

Colour scale_colour(ColourBy by, double part) {
  if (by == ColourBy::intensity) return along(kIntensityStops, part);
  return along(kHeightStops, part);
}

Colour label_colour(std::int32_t label) {
  const auto* found = std::ranges::find(kLabelColours, label, &LabelColour::label);
  return found == std::end(kLabelColours) ? class_colour(label) : rgb(found->code);
}

Colour class_colour(std::int32_t number) {
  // Steps of the golden angle around the colour wheel never come near an earlier hue soon.
  const double turn = 0.08 + 0.6180339887498949 * static_cast<double>(number);
  const double hue = 6 * (turn - std::floor(turn));
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue, 6.0);
    const double full = std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<float>(1.0 - 0.72 * full);
  };
  return {channel(5), channel(3), channel(1)};
}

PointColours colour_points(const PointCloud& cloud, std::span<const std::int32_t> classes,
                           ColourBy by, std::span<const ClassStyle> styles) {
  const auto points = static_cast<std::size_t>(cloud.size());
  if (!classes.empty()) {
    PUMICE_EXPECTS(classes.size() == points, "classes has ",
                   counted(std::ssize(classes), "entry", "entries"), " for ",
                   counted(cloud.size(), "point"), ": give one a point");
    return by_class(classes, [&](std::int32_t number) { return class_style(number, styles); });
  }
  switch (by) {
    case ColourBy::height: break;
    case ColourBy::intensity:
      PUMICE_EXPECTS(points == 0 || cloud.intensity.defined(),
                     "colour = intensity, but the scan has none: colour by height");
      if (points == 0) return {};
      return by_scale({cloud.intensity.data<float>(), cloud.intensity.data<float>() + points}, by);
    case ColourBy::label:
      PUMICE_EXPECTS(points == 0 || cloud.labels.defined(),
                     "colour = label, but the scan has none: colour by height or intensity");
      if (points == 0) return {};
      return by_class(cloud.labels.span<std::int32_t>(), label_style);
  }
  std::vector<float> heights(points);
  for (std::size_t i = 0; i < points; ++i) {
    heights[i] = cloud.positions.data<float>()[3 * i + 2];
  }
  return by_scale(std::move(heights), by);
}

}   // namespace pumice::cli
