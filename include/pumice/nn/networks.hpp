// Networks of the field, and a table of them by name.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/nn/linear.hpp>
#include <pumice/nn/sequential.hpp>

namespace pumice::nn {

using MinkUNetWidths = std::array<std::int64_t, 9>;   // stem, 4 encoder stages, 4 decoder stages
inline constexpr MinkUNetWidths kSpvnasWidths{32, 32, 64, 128, 256, 256, 128, 96, 96};
inline constexpr MinkUNetWidths kDrivingWidths{64, 64, 64, 128, 256, 256, 128, 64, 64};
/// "spvnas", "driving", or nine numbers as in "32,32,64,128,256,256,128,96,96"; UserError for
/// others.
MinkUNetWidths parse_widths(std::string_view text);

struct MinkUNet42Options {
  MinkUNetWidths widths = kSpvnasWidths;
  double width_factor = 1;   // widths times this, rounded to nearest, at least 1
  std::int64_t in_channels = 4;
  std::int64_t classes = 19;
  std::uint64_t seed = 0;
};

/// How many numbers the weights of its convolutions and its classifier hold, without making them:
/// they grow with the square of the width factor, and norms and biases are little beside them.
std::int64_t minkunet42_weights(const MinkUNet42Options& options);

/// Semantic segmentation: a U-net of 42 convolutions with kernels above 1. Scores of every voxel.
///
///   stem ──────────────────────────────────────────── cat ─ up4 ─ classifier
///     └─ stage1 ───────────────────────────── cat ─ up3 ┘
///          └─ stage2 ──────────────── cat ─ up2 ┘
///               └─ stage3 ─── cat ─ up1 ┘
///                    └─ stage4 ┘
///
/// A stage is conv 2³/2 and two residual blocks; an up is the inverse of that convolution, the
/// concatenation with the encoder's features on the same sites, and two residual blocks.
class MinkUNet42 final : public Module {
 public:
  explicit MinkUNet42(const MinkUNet42Options& options = {});
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  struct Up {
    ModulePtr deconvolution;
    std::shared_ptr<ResidualBlock> joining;
    std::shared_ptr<ResidualBlock> last;
  };
  std::shared_ptr<Sequential> stem_;
  std::vector<std::shared_ptr<Sequential>> stages_;
  std::vector<Up> ups_;
  std::shared_ptr<Sequential> classifier_;
};

struct EncoderOptions {
  std::int64_t in_channels = 4;
  std::uint64_t seed = 0;
};

/// The sparse encoder of CenterPoint on 0.075 m voxels: 21 convolutions, residual, dilating
/// outputs. Give the input the grid of its range as spatial shape; the result is 1/8 of it in x
/// and y.
class CenterPointEncoder final : public Module {
 public:
  explicit CenterPointEncoder(const EncoderOptions& options = {});
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  std::vector<std::shared_ptr<Sequential>> stages_;
};

/// The sparse encoder of SECOND, as in OpenPCDet's VoxelBackBone8x: 12 convolutions.
class SecondEncoder final : public Module {
 public:
  explicit SecondEncoder(const EncoderOptions& options = {});
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  std::vector<std::shared_ptr<Sequential>> stages_;
};

/// What a network expects of its input, in metres, x y z.
struct NetworkInfo {
  std::string_view name;          // "minkunet42"
  std::string_view description;   // one line
  std::array<double, 3> voxel_size;
  std::optional<std::array<double, 6>> range;   // low x y z, high x y z; absent: no crop
  std::optional<Axes> spatial_shape;            // grid of that range; absent: unbounded
  std::int64_t in_channels;                     // default
  bool takes_widths = false;                    // NetworkOptions::widths and width_factor
};

std::span<const NetworkInfo> networks();
/// UserError listing the names there are.
const NetworkInfo& find_network(std::string_view name);

struct NetworkOptions {
  std::optional<std::int64_t> in_channels{};
  std::int64_t classes = 19;               // minkunet42
  MinkUNetWidths widths = kSpvnasWidths;   // minkunet42
  double width_factor = 1;                 // minkunet42
  std::uint64_t seed = 0;
};
/// By name, with seeded weights, in training mode.
std::shared_ptr<Module> make_network(std::string_view name, const NetworkOptions& options = {});

}   // namespace pumice::nn
