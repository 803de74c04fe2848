// Plain translation.
#include "ops/cuda/tile_problem.hpp"

#include <pumice/core/error.hpp>

#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

ElementType operand_type(DType features, bool tf32, const char* op) {
  const ElementType stored = element_type(features, op, "features");
  PUMICE_ENSURES(!tf32 || stored == ElementType::f32, op, ": ", name_of(features), " as tf32");
  return tf32 ? ElementType::tf32 : stored;
}

namespace {

std::int32_t channels_of(const ConstTensorView& tensor) {
  return tensor.defined() ? static_cast<std::int32_t>(tensor.extent(1)) : 0;
}

}   // namespace

TileProblem describe(const TileProduct& product, Gather gather, std::uint32_t architecture,
                     Write write) {
  const Shortcut& shortcut = product.shortcut;
  const auto groups = static_cast<std::int32_t>(product.groups);
  const bool sloped = product.epilogue.activation == Activation::none ||
                      product.epilogue.activation == Activation::relu ||
                      product.epilogue.activation == Activation::leaky_relu;
  return {
      .operand = operand_type(product.input.dtype(), product.tf32, "convolution"),
      .output = element_type(product.output.dtype(), "convolution", "output"),
      .gather = gather,
      .write = write,
      .in_channels = (channels_of(product.input) + channels_of(product.second)) / groups,
      .first_channels = channels_of(product.input) / groups,
      .out_channels = static_cast<std::int32_t>(product.output.extent(1)) / groups,
      .groups = groups,
      .shortcut_channels = channels_of(shortcut.features) + channels_of(shortcut.second),
      .shortcut_first_channels = channels_of(shortcut.features),
      .activations = write != Write::store || sloped ? ActivationSet::sloped : ActivationSet::all,
      .rows = product.output.rows(),
      .offsets = product.weight.extent(0),
      .architecture = architecture};
}

EpilogueArguments epilogue_of(const Epilogue& epilogue) {
  return {.scale = static_cast<const float*>(epilogue.scale.raw()),
          .shift = static_cast<const float*>(epilogue.shift.raw()),
          .residual = epilogue.residual.raw(),
          .slope = static_cast<float>(epilogue.slope),
          .activation = epilogue.activation};
}

TileMapRef identity_map(const TileProduct& product) {
  TileMapRef map;
  map.in_rows = product.rows.value_or(RowCountRef{nullptr, product.input.rows()});
  map.out_rows = product.rows.value_or(RowCountRef{nullptr, product.output.rows()});
  map.offsets = 1;
  return map;
}

}   // namespace pumice::cuda
