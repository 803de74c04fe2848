// What the kernels of voxelisation (pumice/coords/voxelize.h) are launched with.
#pragma once

#include <pumice/coords/level_arguments.h>
#include <pumice/grid/sort_arguments.h>

namespace pumice {

inline constexpr int kVoxelizeThreads = 256;
inline constexpr int kQuantiseItems = 4;   // points of a thread: digits are counted once a block
inline constexpr int kQuantisePoints = kVoxelizeThreads * kQuantiseItems;
inline constexpr int kPointAxes = 3;

struct QuantiseArguments {
  RowCountRef points{};
  const float* positions = nullptr;       // [points, stride], x y z first
  const int64_t* cloud_begin = nullptr;   // [clouds + 1]; null: one cloud
  const int32_t* batch = nullptr;         // [points], the cloud of each; null: as cloud_begin says
  int32_t clouds = 1;
  int32_t stride = kPointAxes;
  float origin[kPointAxes] = {};
  float size[kPointAxes] = {};
  float high[kPointAxes] = {};      // points outside [origin, high) are left out
  int32_t has_range = 0;            // 0: none is
  int32_t shape[kPointAxes] = {};   // as are those whose cell is outside [0, shape); 0: none is
  KeyLayout layout{};
  uint64_t* keys = nullptr;        // of a point that is left out: the bit above all keys
  DigitTotals totals{};            // of the keys; null where the sort does without
  RowTrouble* outside = nullptr;   // points that are not finite, or have no key
  int64_t* kept = nullptr;         // zeroed; how many are not left out; poison where points are
};

enum class PointReduction : int32_t { first, mean, max, sum };

struct ReduceArguments {
  RowCountRef voxels{};
  const int64_t* begin = nullptr;      // [voxels + 1]
  const uint32_t* members = nullptr;   // points of voxel v: members[begin[v], begin[v + 1])
  const float* features = nullptr;     // [points, channels]
  float* reduced = nullptr;            // [voxels, channels]
  int32_t channels = 0;
  PointReduction reduction = PointReduction::mean;
};

}   // namespace pumice
