// One generated convolution: drawn from a seed, described in words, so that a failure can be run
// again by its number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/plan/convolution_plan.hpp>

#include "reference/dense_convolution.hpp"

namespace pumice::test {

enum class Mode { submanifold, dilating, cell, transposed, inverse, generative, between };
inline constexpr int kModes = 7;
inline const char* name_of(Mode mode) {
  constexpr const char* kNames[] = {"submanifold", "dilating",   "cell",   "transposed",
                                    "inverse",     "generative", "between"};
  return kNames[static_cast<int>(mode)];
}

struct ConvolutionCase {
  std::uint64_t seed = 0;
  Mode mode = Mode::submanifold;
  Dataflow dataflow = Dataflow::fetch_on_demand;
  DType dtype = DType::f32;
  int dimension = 3;
  reference::Geometry geometry;
  std::optional<std::vector<int>> shape;   // of the input's grid
  std::int64_t groups = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  bool scale = false, bias = false, residual = false, relu = false;
  bool shuffled = true;      // rows in chance order, else sorted by site
  reference::Sites in;       // of the map: coarse sites where the mode has them
  reference::Sites target;   // Mode::transposed, Mode::between

  std::int64_t volume() const {
    std::int64_t volume = 1;
    for (const int extent : geometry.size)
      volume *= extent;
    return volume;
  }
};

inline std::ostream& operator<<(std::ostream& out, const ConvolutionCase& c) {
  const auto list = [&](const char* name, const std::vector<int>& values) {
    out << ' ' << name;
    for (const int value : values)
      out << ' ' << value;
    out << ',';
  };
  out << "seed " << c.seed << ": " << name_of(c.mode) << ' ' << pumice::name_of(c.dataflow) << ' '
      << pumice::name_of(c.dtype) << ", " << c.dimension << "-D,";
  list("kernel", c.geometry.size);
  list("stride", c.geometry.stride);
  list("padding", c.geometry.padding);
  list("dilation", c.geometry.dilation);
  if (c.shape) list("shape", *c.shape);
  return out << ' ' << c.in.size() << " sites, " << c.target.size() << " targets, " << c.in_channels
             << " -> " << c.out_channels << " channels, " << c.groups << " groups"
             << (c.scale ? ", scale" : "") << (c.bias ? ", bias" : "")
             << (c.residual ? ", residual" : "") << (c.relu ? ", relu" : "")
             << (c.shuffled ? ", shuffled" : "");
}

/// Distinct sites in a box just large enough that many are neighbours; without a shape the box lies
/// across zero, so that most coordinates of most cases are negative somewhere.
inline reference::Sites draw_sites(std::int64_t count, int dimension, int batches,
                                   const std::optional<std::vector<int>>& shape, bool shuffled,
                                   Random& random) {
  const double crowding = random.uniform(1.1, 2.5);
  const auto extent = static_cast<int>(
      std::ceil(crowding * std::pow(static_cast<double>(std::max<std::int64_t>(count, 1)) /
                                        static_cast<double>(batches),
                                    1.0 / dimension)));
  std::int64_t room = batches;
  for (int axis = 0; axis < dimension; ++axis) {
    room *= shape ? (*shape)[static_cast<std::size_t>(axis)] : extent;
  }
  count = std::min(count, room);
  std::set<reference::Site> distinct;
  reference::Sites sites;
  while (static_cast<std::int64_t>(sites.size()) < count) {
    reference::Site site{static_cast<int>(random.integer(0, batches - 1))};
    for (int axis = 0; axis < dimension; ++axis) {
      site.push_back(
          static_cast<int>(shape ? random.integer(0, (*shape)[static_cast<std::size_t>(axis)] - 1)
                                 : random.integer(0, extent - 1) - extent / 2));
    }
    if (distinct.insert(site).second) sites.push_back(site);
  }
  if (!shuffled) std::sort(sites.begin(), sites.end());
  return sites;
}

/// Sites to reach from `c.in`: most of them stand where some offset leads (but for a step aside on
/// a strided axis), the others anywhere near.
inline reference::Sites draw_targets(const ConvolutionCase& c, std::int64_t count, int batches,
                                     Random& random) {
  reference::Sites sites = draw_sites(c.in.empty() ? count : count / 3, c.dimension, batches,
                                      std::nullopt, true, random);
  std::set<reference::Site> distinct(sites.begin(), sites.end());
  for (std::int64_t attempt = 0; !c.in.empty() && attempt < count - count / 3; ++attempt) {
    reference::Site site = c.in[static_cast<std::size_t>(
        random.integer(0, static_cast<std::int64_t>(c.in.size()) - 1))];
    for (std::size_t axis = 0; axis < c.geometry.size.size(); ++axis) {
      const auto offset = static_cast<int>(random.integer(0, c.geometry.size[axis] - 1));
      const int shift = offset * c.geometry.dilation[axis] - c.geometry.padding[axis];
      int& x = site[1 + axis];
      x = c.mode == Mode::transposed ? x * c.geometry.stride[axis] + shift
                                     : (x - shift) / c.geometry.stride[axis];
    }
    if (distinct.insert(site).second) sites.push_back(site);
  }
  if (!c.shuffled) std::sort(sites.begin(), sites.end());
  return sites;
}

inline std::int64_t draw_rows(Random& random) {
  constexpr std::int64_t kRows[] = {0, 1, 2, 31, 32, 33, 64, 65, 129, 200};
  if (random.uniform() < 0.4) return kRows[random.integer(0, 9)];
  return random.integer(2, 48);
}

/// Seeds from here on draw cases of 65,537 rows; those below mostly small numbers and those around
/// the widths of vectors.
inline constexpr std::uint64_t kLargeSeeds = 1'000'000;

inline ConvolutionCase draw_case(std::uint64_t seed) {
  Random random(seed);
  const bool large = seed >= kLargeSeeds;
  const auto chance = [&](double p) { return random.uniform() < p; };
  ConvolutionCase c;
  c.seed = seed;
  c.mode = static_cast<Mode>(random.integer(0, kModes - 1));
  c.dataflow = static_cast<Dataflow>(random.integer(0, 2));
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16};
  c.dtype = kTypes[random.integer(0, 4)];
  c.dimension = static_cast<int>(large ? random.integer(2, 3) : random.integer(1, 4));
  const bool own_stride = c.mode != Mode::submanifold;
  // Every output of a dilating or generative case is looked up once for each offset, and there can
  // be volume · rows of them: keep one case to milliseconds.
  const bool spreads =
      c.mode == Mode::dilating || c.mode == Mode::generative || c.mode == Mode::inverse;
  const std::int64_t largest = large ? 27 : spreads ? 100 : chance(0.05) ? 625 : 150;
  do {
    c.geometry = {};
    for (int axis = 0; axis < c.dimension; ++axis) {
      const auto size = static_cast<int>(random.integer(1, 5));
      const auto dilation = static_cast<int>(chance(0.6) ? 1 : random.integer(1, 3));
      c.geometry.size.push_back(size);
      c.geometry.stride.push_back(
          static_cast<int>(own_stride && chance(0.7) ? random.integer(1, 3) : 1));
      c.geometry.dilation.push_back(dilation);
      // Centred as submanifold windows are, or anything up to the kernel's reach.
      c.geometry.padding.push_back(
          c.mode == Mode::submanifold || chance(0.5)
              ? (size % 2 == 1 ? (size - 1) / 2 * dilation : 0)
              : static_cast<int>(random.integer(0, (size - 1) * dilation)));
    }
  } while (c.volume() > largest);

  std::int64_t count = large ? 65'537 : draw_rows(random);
  if (!large && spreads) count = std::min(count, 60000 / (c.volume() * c.volume()) + 1);
  const auto batches = static_cast<int>(chance(0.5) ? 1 : random.integer(2, 4));
  c.shuffled = chance(0.7);
  if (!large && chance(0.25)) {
    c.shape.emplace();
    for (int axis = 0; axis < c.dimension; ++axis) {
      // A convolution needs room for its kernel: an output grid without cells is refused.
      const auto i = static_cast<std::size_t>(axis);
      const int reach = c.geometry.dilation[i] * (c.geometry.size[i] - 1) + 1;
      c.shape->push_back(static_cast<int>(random.integer(reach, reach + 6)));
    }
  }
  c.in = draw_sites(count, c.dimension, batches, c.shape, c.shuffled, random);
  if (c.mode == Mode::transposed || c.mode == Mode::between) {
    c.target = draw_targets(c, large ? 65'537 : draw_rows(random), batches, random);
  }

  constexpr std::int64_t kWidths[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 32};
  const std::int64_t widest = large ? 4 : chance(0.1) ? 10 : 6;
  switch (random.integer(0, 3)) {
    case 0:   // depthwise
      c.groups = c.in_channels = c.out_channels = kWidths[random.integer(0, widest)];
      break;
    case 1:
      c.groups = 2;
      c.in_channels = 2 * random.integer(1, 5);
      c.out_channels = 2 * random.integer(1, 5);
      break;
    default:
      c.in_channels = kWidths[random.integer(0, widest)];
      c.out_channels = kWidths[random.integer(0, widest)];
  }
  c.scale = chance(0.3);
  c.bias = chance(0.6);
  c.residual = chance(0.3);
  c.relu = chance(0.4);
  return c;
}

struct CaseChannels {
  std::int64_t in, out, groups;
};
/// Every pair of channels is kernels to compile, so that there is a fixed list of them. Those of
/// the first line have kernels of their own for each number of offsets too.
inline constexpr CaseChannels kNarrowChannels[] = {{4, 24, 1}, {16, 16, 1}, {3, 5, 1}};
inline constexpr CaseChannels kWideChannels[] = {
    {5, 33, 1},  {24, 48, 1}, {64, 40, 1}, {37, 53, 1},  {96, 64, 1},  {1, 48, 1},
    {6, 100, 2}, {96, 72, 3}, {8, 8, 8},   {33, 33, 33}, {160, 96, 1}, {64, 64, 64}};
inline constexpr std::int64_t kNarrowVolumes[] = {1, 3, 8, 9, 27, 125};

/// The case of a seed as a device has it: its types, its dataflow, channels of the list, and now
/// and then more rows than a few tiles have.
inline ConvolutionCase draw_device_case(std::uint64_t seed) {
  ConvolutionCase c = draw_case(seed);
  Random random(seed, 5);
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
  c.dtype = kTypes[random.integer(0, 2)];
  c.dataflow = Dataflow::implicit_gemm;
  const auto draw_channels = [&](std::span<const CaseChannels> list) {
    const CaseChannels& drawn =
        list[static_cast<std::size_t>(random.integer(0, static_cast<int>(list.size()) - 1))];
    c.in_channels = drawn.in;
    c.out_channels = drawn.out;
    c.groups = drawn.groups;
    if (random.uniform() < 0.5) std::swap(c.in_channels, c.out_channels);
  };
  const bool narrow = std::ranges::count(kNarrowVolumes, c.volume()) > 0;
  const bool is_narrow = narrow && random.uniform() < 0.6;
  draw_channels(is_narrow ? std::span<const CaseChannels>(kNarrowChannels)
                          : std::span<const CaseChannels>(kWideChannels));
  if (c.volume() <= 27 && !c.shape && c.in_channels * c.out_channels <= 2000 &&
      random.uniform() < 0.05) {
    const int batches = static_cast<int>(random.integer(1, 4));
    c.in = draw_sites(random.integer(300, 3000), c.dimension, batches, c.shape, c.shuffled, random);
    if (!c.target.empty()) c.target = draw_targets(c, random.integer(300, 3000), batches, random);
  }
  return c;
}

}   // namespace pumice::test
