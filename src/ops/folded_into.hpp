// Where the scale and the shift of a folded norm go.
#pragma once

#include <pumice/ops/folded_norm.hpp>

namespace pumice {

struct FoldedInto {
  TensorView scale;   // [C], of the compute type
  TensorView shift;
};

}   // namespace pumice
