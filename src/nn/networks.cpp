// Networks by name.
#include <pumice/nn/networks.hpp>

#include "core/printable.hpp"

namespace pumice::nn {
namespace {

// Grids: 108 m / 0.075 m = 1440; 70.4 m / 0.05 m = 1408, 80 m / 0.05 m = 1600; 40 cells of height
// and one more, as the detectors' own configurations have it.
const std::array<NetworkInfo, 3> kNetworks{
    NetworkInfo{.name = "minkunet42",
                .description = "semantic segmentation, U-net of 42 convolutions",
                .voxel_size = {0.05, 0.05, 0.05},
                .range = std::nullopt,
                .spatial_shape = std::nullopt,
                .in_channels = 4,
                .takes_widths = true},
    NetworkInfo{.name = "centerpoint",
                .description = "encoder of a detector, residual, 21 convolutions",
                .voxel_size = {0.075, 0.075, 0.2},
                .range = std::array<double, 6>{-54, -54, -5, 54, 54, 3},
                .spatial_shape = Axes{1440, 1440, 41, 0},
                .in_channels = 4},
    NetworkInfo{.name = "second",
                .description = "encoder of a detector, plain, 12 convolutions",
                .voxel_size = {0.05, 0.05, 0.1},
                .range = std::array<double, 6>{0, -40, -3, 70.4, 40, 1},
                .spatial_shape = Axes{1408, 1600, 41, 0},
                .in_channels = 4},
};

}   // namespace

std::span<const NetworkInfo> networks() {
  return kNetworks;
}

const NetworkInfo& find_network(std::string_view name) {
  std::string known;
  for (const NetworkInfo& info : kNetworks) {
    if (info.name == name) return info;
    known += known.empty() ? "" : ", ";
    known += info.name;
  }
  detail::raise_user("network = \"", printable(name), "\": there are ", known);
}

std::shared_ptr<Module> make_network(std::string_view name, const NetworkOptions& options) {
  const NetworkInfo& info = find_network(name);
  const std::int64_t in_channels = options.in_channels.value_or(info.in_channels);
  if (info.name == "minkunet42") {
    return std::make_shared<MinkUNet42>(MinkUNet42Options{.widths = options.widths,
                                                          .width_factor = options.width_factor,
                                                          .in_channels = in_channels,
                                                          .classes = options.classes,
                                                          .seed = options.seed});
  }
  const EncoderOptions encoder{.in_channels = in_channels, .seed = options.seed};
  if (info.name == "centerpoint") return std::make_shared<CenterPointEncoder>(encoder);
  PUMICE_ENSURES(info.name == "second", "no factory for ", info.name);
  return std::make_shared<SecondEncoder>(encoder);
}

}   // namespace pumice::nn
