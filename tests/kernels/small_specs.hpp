// Specifications and a map that are small, so that little is emulated.
#pragma once

#include <pumice/shared/tile_spec.h>

#include "formats/synthetic_map.hpp"

namespace pumice::test {

/// One source of `in` channels.
constexpr TileSpec small_tile(std::int32_t in, std::int32_t out, ElementType operand) {
  TileSpec spec;
  spec.instruction = operand == ElementType::f32 ? Instruction::fma : Instruction::mma_sync;
  spec.operand = operand;
  spec.output = operand == ElementType::tf32 ? ElementType::f32 : operand;
  spec.in_channels = spec.first_channels = in;
  spec.out_channels = out;
  spec.tile_rows = 64;
  spec.tile_columns = 32;
  spec.tile_depth = 64 / element_bytes(operand);
  spec.stages = 3;
  spec.row_warps = 2;
  return spec;
}

/// A specification that `change` was applied to.
template <class Spec, class Change> constexpr Spec changed(Spec spec, Change change) {
  change(spec);
  return spec;
}

/// A kernel of 27 offsets: 60 % of 170 outputs have each.
inline const SyntheticMap& small_map() {
  static const SyntheticMap map = synthetic_map(27, 150, 170, 0.6, false, 1);
  return map;
}

}   // namespace pumice::test
