// MinkUNet42.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/nn/model_card.hpp>
#include <pumice/nn/networks.hpp>

#include "core/printable.hpp"

namespace pumice::nn {
namespace {

constexpr std::size_t kLevels = 4;
constexpr std::int64_t kMostChannels = std::int64_t{1}
                                       << 20;   // all sums of products stay in 64 bits

MinkUNetWidths scaled(const MinkUNet42Options& options) {
  return scaled_widths(options.widths, options.width_factor);
}

/// Halves: one output for every occupied cell of 2×2×2. The inverse mode goes back.
ConvolutionSpec halving(std::int64_t in_channels, std::int64_t out_channels, ConvolutionMode mode) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .window = {.size = axes(3, 2), .stride = axes(3, 2)},
          .mode = mode,
          .outputs = StridedOutputs::cell};
}

std::int64_t residual_weights(std::int64_t in, std::int64_t out) {
  return 27 * (in + out) * out + (in == out ? 0 : in * out);
}

/// A block in a module of its own, so that its path has the "net" that published weights have.
class NamedBlock final : public Module {
 public:
  explicit NamedBlock(const ConvolutionSpec& spec)
      : net_(add_child("net", convolution_block(spec))) {}
  SparseTensor forward(SparseTensor x, Context& context) override {
    return net_->forward(std::move(x), context);
  }

 private:
  std::shared_ptr<Sequential> net_;
};

}   // namespace

MinkUNetWidths scaled_widths(const MinkUNetWidths& widths, double factor) {
  PUMICE_EXPECTS(factor > 0 && std::isfinite(factor), "width factor = ", factor,
                 ": it must be above 0");
  MinkUNetWidths result = widths;
  for (std::int64_t& width : result) {
    PUMICE_EXPECTS(width > 0, "a width of MinkUNet42 = ", width, ": all nine must be at least 1");
    const double wanted = factor * static_cast<double>(width);
    PUMICE_EXPECTS(wanted <= static_cast<double>(kMostChannels), "width factor = ", factor,
                   ": a layer of ", wanted, " channels is too wide; the most is ", kMostChannels);
    width = std::max<std::int64_t>(1, std::llround(wanted));
  }
  return result;
}

MinkUNetWidths parse_widths(std::string_view text) {
  if (text == "spvnas") return kSpvnasWidths;
  if (text == "driving") return kDrivingWidths;
  constexpr const char* kRemedy = "give spvnas, driving, or nine numbers with commas between them";
  MinkUNetWidths widths{};
  std::size_t count = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++count) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    std::int64_t value = 0;
    const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    PUMICE_EXPECTS(failure == std::errc() && stop == word.data() + word.size() && value >= 1 &&
                       value <= kMostChannels,
                   "widths = \"", printable(text), "\": \"", printable(word),
                   "\" is no number from 1 to ", kMostChannels, "; ", kRemedy);
    if (count < widths.size()) widths[count] = value;
    begin = end + 1;
  }
  PUMICE_EXPECTS(count == widths.size(), "widths = \"", printable(text), "\": ", count,
                 count == 1 ? " number; " : " numbers; ", kRemedy);
  return widths;
}

std::int64_t minkunet42_weights(const MinkUNet42Options& options) {
  const MinkUNetWidths width = scaled(options);
  std::int64_t sum = 27 * (options.in_channels + width[0]) * width[0] + width[8] * options.classes;
  for (std::size_t level = 1; level <= kLevels; ++level) {
    const std::int64_t in = width[level - 1];
    const std::int64_t out = width[level];
    sum += 8 * in * in + residual_weights(in, out) + residual_weights(out, out);
  }
  for (std::size_t up = 1; up <= kLevels; ++up) {
    const std::int64_t out = width[kLevels + up];
    sum += 8 * width[kLevels + up - 1] * out;
    sum += residual_weights(out + width[kLevels - up], out) + residual_weights(out, out);
  }
  return sum;
}

MinkUNet42::MinkUNet42(const MinkUNet42Options& options) {
  const MinkUNetWidths width = scaled(options);
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return std::make_shared<Convolution>(submanifold(in, out));
  };
  stem_ = add_child(
      "stem",
      std::make_shared<Sequential>(std::vector<ModulePtr>{
          conv(options.in_channels, width[0]), std::make_shared<BatchNorm>(width[0]), relu(),
          conv(width[0], width[0]), std::make_shared<BatchNorm>(width[0]), relu()}));
  for (std::size_t level = 1; level <= kLevels; ++level) {
    const std::int64_t in = width[level - 1];
    const std::int64_t out = width[level];
    stages_.push_back(add_child(
        "stage" + std::to_string(level),
        std::make_shared<Sequential>(std::vector<ModulePtr>{
            std::make_shared<NamedBlock>(halving(in, in, ConvolutionMode::strided)),
            std::make_shared<ResidualBlock>(in, out), std::make_shared<ResidualBlock>(out, out)})));
  }
  for (std::size_t up = 1; up <= kLevels; ++up) {
    const std::int64_t in = width[kLevels + up - 1];
    const std::int64_t out = width[kLevels + up];
    const std::int64_t skip = width[kLevels - up];
    // Two children with a dotted name: the skip comes between them, so they are no Sequential.
    const std::string name = "up" + std::to_string(up);
    Up& parts = ups_.emplace_back();
    parts.deconvolution = add_child(
        name + ".0", std::make_shared<NamedBlock>(halving(in, out, ConvolutionMode::inverse)));
    parts.joining = std::make_shared<ResidualBlock>(out + skip, out, 3, NormOptions{}, skip);
    parts.last = std::make_shared<ResidualBlock>(out, out);
    add_child(name + ".1",
              std::make_shared<Sequential>(std::vector<ModulePtr>{parts.joining, parts.last}));
  }
  classifier_ = add_child("classifier", std::make_shared<Sequential>(std::vector<ModulePtr>{
                                            std::make_shared<Linear>(width[8], options.classes)}));
  initialize(*this, options.seed);
}

SparseTensor MinkUNet42::forward(SparseTensor x, Context& context) {
  x = stem_->forward(std::move(x), context);
  std::vector<SparseTensor> skips;
  for (const auto& stage : stages_) {
    skips.push_back(x);
    x = stage->forward(std::move(x), context);
  }
  for (const Up& up : ups_) {
    x = up.deconvolution->forward(std::move(x), context);
    x = up.joining->forward(std::move(x), skips.back(), context);
    skips.pop_back();
    x = up.last->forward(std::move(x), context);
  }
  return classifier_->forward(std::move(x), context);
}

}   // namespace pumice::nn
