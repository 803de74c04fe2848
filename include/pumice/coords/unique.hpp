// Distinct coordinates of a list that may repeat.
#pragma once

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

struct UniqueCoordinates {
  CoordinateSetPtr set;   // rows in key order
  Tensor row_of;          // int32 [P]: row of the set each input coordinate fell into
  Tensor first;           // int32 [N]: smallest input index that fell into the row
};

/// coordinates: int32 [P, 1 + D], duplicates allowed. On a device, waits for how many sites there
/// are.
UniqueCoordinates unique_coordinates(ConstTensorView coordinates,
                                     const CoordinateOptions& options = {});

}   // namespace pumice
