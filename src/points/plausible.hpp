// Whether the columns of a raw file can be what its layout says.
#pragma once

#include "points/formats.hpp"

namespace pumice::detail {

inline constexpr double kFarthest = 1e5;   // metres; no scanner sees 100 km
inline constexpr double kNearest = 1e-6;   // metres; nearer than that, but not 0, is no distance
inline constexpr double kSmallestScene = 0.01;   // metres; a scan reaches farther than that

/// The columns of a raw file, as many as there are whole rows.
PointColumns raw_columns(Bytes bytes, const RawLayout& layout, Role fifth);

/// Whether the first rows are finite, within kFarthest, seldom below kNearest, and reach beyond
/// kSmallestScene.
bool can_be_metres(const PointColumns& columns);

/// Mean relative difference of x, y, z between neighbouring rows: about 0.1 to 0.3 for a scan,
/// above 0.6 when the columns are mixed up.
double disorder(const PointColumns& columns);

}   // namespace pumice::detail
