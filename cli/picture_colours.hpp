// The colours of pictures: which one a point gets, and what the legend says about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pumice/nn/model_card.hpp>

#include "picture_canvas.hpp"

namespace pumice::cli {

// Of all pictures.
inline constexpr Colour kPictureBackground{0.043f, 0.055f, 0.078f};
inline constexpr Colour kPictureLine{0.30f, 0.38f, 0.48f};
inline constexpr Colour kPictureText{0.86f, 0.90f, 0.95f};
inline constexpr Colour kPictureDim{0.52f, 0.60f, 0.70f};

struct LegendEntry {
  std::int32_t number = 0;
  Colour colour;
  std::string name;
  std::int64_t points = 0;
};

struct PointColours {
  std::vector<Colour> colours;        // one a point
  std::vector<LegendEntry> classes;   // those that occur, the most frequent first
  std::string quantity;               // of a scale, "height, m"; empty when there are classes
  double low = 0;                     // the ends of the scale
  double high = 0;
};

/// See `render` for the meaning and the errors.
PointColours colour_points(const PointCloud& cloud, std::span<const std::int32_t> classes,
                           ColourBy by, std::span<const ClassStyle> styles = {});

/// Names and colours of a model's classes, those of the labels that a class stands for where the
/// card has no colours.
std::vector<ClassStyle> class_styles(const nn::ModelCard& card);

/// The colour at `part` (0 to 1) of the scale of `by`.
Colour scale_colour(ColourBy by, double part);
/// Of a class of SemanticKITTI.
Colour label_colour(std::int32_t label);
/// Of any class: hues that keep well apart for neighbouring numbers.
Colour class_colour(std::int32_t number);

}   // namespace pumice::cli
