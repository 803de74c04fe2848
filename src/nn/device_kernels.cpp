// Layers to products, products to sources.
#include "nn/device_kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <pumice/nn/convolution.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/networks.hpp>

#include "coords/cuda/sources.hpp"
#include "formats/cuda/sources.hpp"
#include "graphs/cuda/sources.hpp"
#include "maps/cuda/sources.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"
#include "plan/space/gradient_table.hpp"
#include "plan/space/tile_table.hpp"

namespace pumice::nn {

namespace {

/// Rows are no matter.
ConvolutionProblem problem_of(const LayerShape& layer, ElementType type, Direction direction) {
  const bool is_backward = direction == Direction::input_gradient;
  return {.direction = direction,
          .offsets = layer.offsets,
          .in_channels = is_backward ? layer.out_channels : layer.in_channels,
          .out_channels = is_backward ? layer.in_channels : layer.out_channels,
          .groups = layer.groups,
          .dtype = stored_as(type),
          .numerics = {.tf32 = type == ElementType::tf32},
          .identity = !layer.has_map,
          .second_channels = layer.second_channels,
          .shortcut_channels = layer.shortcut_channels,
          .shortcut_second_channels = layer.shortcut_second_channels};
}

/// Of inputs in several tensors there is a kernel where one reads them all; else layers of one
/// input each do it.
std::vector<cuda::PlannedKernel> kernels_of_inputs(const LayerShape& layer, ElementType type,
                                                   std::uint32_t architecture) {
  const ConvolutionProblem problem = problem_of(layer, type, Direction::forward);
  if (!can_fuse_inputs(problem, usual_target(architecture), Dataflow::implicit_gemm)) return {};
  return cuda::kernels_for(problem, architecture);
}

std::vector<cuda::PlannedKernel> kernels_of(const LayerShape& layer, ElementType type,
                                            std::uint32_t architecture) {
  if (layer.has_more_inputs()) return kernels_of_inputs(layer, type, architecture);
  std::vector<cuda::PlannedKernel> kernels;
  const auto append = [&](const ConvolutionProblem& problem) {
    for (const cuda::PlannedKernel& kernel : cuda::kernels_for(problem, architecture))
      kernels.push_back(kernel);
  };
  append(problem_of(layer, type, Direction::forward));
  append(problem_of(layer, type, Direction::input_gradient));
  ConvolutionProblem gradient = problem_of(layer, type, Direction::weight_gradient);
  // PyTorch stores the weights of linear layers the other way round: features and gradients change
  // places.
  if (layer.is_linear) std::swap(gradient.in_channels, gradient.out_channels);
  for (const bool deterministic : {false, true}) {
    gradient.numerics.deterministic = deterministic;
    append(gradient);
  }
  return kernels;
}

void add_once(std::vector<LayerShape>& layers, const LayerShape& layer) {
  if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
}

/// What a residual block's convolutions read beside their own input: when it is folded, and as
/// links of a chain that trains, where the shortcut runs by itself.
void add_fused(std::vector<LayerShape>& layers, const ResidualBlock& block) {
  const ConvolutionSpec& first = block.first().spec();
  if (first.in_channels == first.out_channels) return;
  LayerShape layer{.in_channels = first.in_channels,
                   .out_channels = first.out_channels,
                   .offsets = first.window.volume(),
                   .second_channels = block.right_channels()};
  if (layer.second_channels > 0) {
    add_once(layers, layer);
    LayerShape shortcut = layer;
    shortcut.offsets = 1;
    shortcut.has_map = false;
    add_once(layers, shortcut);
  }
  layer.in_channels = first.out_channels;
  layer.second_channels = 0;
  layer.shortcut_channels = first.in_channels;
  layer.shortcut_second_channels = block.right_channels();
  add_once(layers, layer);
}

/// Each shape once.
std::vector<LayerShape> layers_of(const Module& network) {
  std::vector<LayerShape> layers;
  for (const ParameterTree* module : network.modules()) {
    LayerShape layer;
    if (const auto* block = dynamic_cast<const ResidualBlock*>(module)) add_fused(layers, *block);
    if (const auto* convolution = dynamic_cast<const Convolution*>(module)) {
      const ConvolutionSpec& spec = convolution->spec();
      const std::int64_t offsets = spec.window.volume();
      layer = {.in_channels = spec.in_channels,
               .out_channels = spec.out_channels,
               .groups = spec.groups,
               .offsets = offsets,
               .has_map = offsets > 1 || spec.mode != ConvolutionMode::submanifold};
    } else if (const auto* linear = dynamic_cast<const Linear*>(module)) {
      const Tensor& weight = linear->weight()->value();
      layer = {.in_channels = weight.extent(1),
               .out_channels = weight.extent(0),
               .has_map = false,
               .is_linear = true};
    } else {
      continue;
    }
    add_once(layers, layer);
  }
  return layers;
}

const std::vector<LayerShape>& common_layers() {
  static const std::vector<LayerShape> layers = [] {
    std::vector<LayerShape> all;
    const auto add = [&](std::string_view name, const NetworkOptions& options) {
      for (const LayerShape& layer : layers_of(*make_network(name, options)))
        add_once(all, layer);
    };
    for (const std::int64_t in_channels : {4, 5}) {   // of SemanticKITTI and nuScenes
      add("minkunet42", {.in_channels = in_channels});
      add("minkunet42", {.in_channels = in_channels, .widths = kDrivingWidths});
      add("minkunet42", {.in_channels = in_channels, .width_factor = 0.5});
      add("centerpoint", {.in_channels = in_channels});
      add("second", {.in_channels = in_channels});
    }
    return all;
  }();
  return layers;
}

}   // namespace

void DeviceKernels::add(const cuda::PlannedKernel& kernel) {
  const bool known = std::any_of(kernels_.begin(), kernels_.end(), [&](const auto& other) {
    return other.source == kernel.source || (other.source->text == kernel.source->text &&
                                             other.source->options == kernel.source->options);
  });
  if (!known) kernels_.push_back(kernel);
}

void DeviceKernels::add_shared() {
  for (const auto groups : {cuda::coords_kernels(), cuda::maps_kernels(), cuda::graphs_kernels(),
                            cuda::formats_kernels(), cuda::ops_kernels()}) {
    for (const jit::KernelGroup& group : groups)
      add({.source = &group.source, .kind = group.source.name.c_str()});
  }
  add(cuda::planned_packing());
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    add(cuda::planned_sums(type));
    add(cuda::planned_depthwise(type));
  }
}

void DeviceKernels::add(const LayerShape& layer, std::span<const ElementType> types) {
  for (const ElementType type : types) {
    for (const cuda::PlannedKernel& kernel : kernels_of(layer, type, architecture_))
      add(kernel);
  }
}

void DeviceKernels::add(const Module& network, std::span<const ElementType> types) {
  for (const LayerShape& layer : layers_of(network))
    add(layer, types);
}

void DeviceKernels::add_common(std::span<const ElementType> types) {
  for (const LayerShape& layer : common_layers())
    add(layer, types);
}

void DeviceKernels::add(std::int64_t in_channels, std::int64_t out_channels,
                        std::span<const ElementType> types) {
  for (const std::int64_t offsets : {27, 8, 1}) {
    add({.in_channels = in_channels,
         .out_channels = out_channels,
         .offsets = offsets,
         .has_map = offsets > 1},
        types);
  }
  add({.in_channels = in_channels,
       .out_channels = out_channels,
       .has_map = false,
       .is_linear = true},
      types);
}

void DeviceKernels::add(const std::vector<tune::StoredPlan>& plans) {
  for (const tune::StoredPlan& stored : plans) {
    if (is_of_sparse_product(stored.key)) continue;   // compiled when first used, in any schedule
    const ConvolutionProblem problem = parse_problem(stored.key.problem);
    for (const cuda::PlannedKernel& kernel :
         cuda::kernels_of(parse_plan(stored.record.plan), problem, architecture_))
      add(kernel);
  }
}

void DeviceKernels::add_tables() {
  for (const TileSpec& spec : cuda::standard_specs(architecture_))
    add(cuda::planned(spec));
  for (const GradientSpec& spec : cuda::standard_gradients(architecture_))
    add(cuda::planned(spec));
}

std::span<const ElementType> product_types() {
  static constexpr std::array kTypes{ElementType::f32, ElementType::tf32, ElementType::f16,
                                     ElementType::bf16};
  return kTypes;
}

DType stored_as(ElementType type) {
  return type == ElementType::f16    ? DType::f16
         : type == ElementType::bf16 ? DType::bf16
                                     : DType::f32;
}

}   // namespace pumice::nn
