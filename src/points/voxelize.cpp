// Voxelisation: cells, keys, one sort, runs of equal keys, reduced features.
#include <pumice/points/voxelize.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <pumice/core/key_layout.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/radix_sort.hpp>

#include "points/cpu/quantise.hpp"
#include "points/cpu/reduce.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kRunChunk = 8192;   // sorted points a task

void check_options(const VoxelOptions& options) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    PUMICE_EXPECTS(std::isfinite(options.size[axis]) && options.size[axis] > 0.0f,
                   "voxel size along ", "xyz"[axis], " = ", options.size[axis],
                   "; give a positive number of metres");
    if (!options.range) continue;
    const float low = (*options.range)[axis];
    const float high = (*options.range)[axis + 3];
    PUMICE_EXPECTS(std::isfinite(low) && std::isfinite(high), "range along ", "xyz"[axis], " = [",
                   low, ", ", high, "), which is not finite; give metres, as -100 and 100");
    PUMICE_EXPECTS(low < high, "range along ", "xyz"[axis], " = [", low, ", ", high,
                   "), which is empty; give x0 y0 z0 x1 y1 z1 in metres, each low below its high");
  }
}

void check_clouds(std::span<const FeaturedCloud> clouds) {
  PUMICE_EXPECTS(!clouds.empty(), "voxelise: there is no cloud; give at least one");
  std::int64_t total = 0;
  for (std::size_t c = 0; c < clouds.size(); ++c) {
    const FeaturedCloud& item = clouds[c];
    PUMICE_ENSURES(item.cloud != nullptr, "cloud ", c, " is null");
    const Tensor& positions = item.cloud->positions;
    PUMICE_EXPECTS(positions.defined() && positions.dtype() == DType::f32 &&
                       positions.shape().rank() == 2 && positions.extent(1) == 3,
                   "positions of cloud ", c, " have shape ", to_string(positions.shape()), " ",
                   name_of(positions.dtype()), "; expected [P, 3] f32");
    const ConstTensorView& features = item.features;
    PUMICE_EXPECTS(features.rank() == 2 && features.dtype() == DType::f32 &&
                       features.rows() == item.cloud->size(),
                   "features of cloud ", c, " have shape ", to_string(features.shape()), " ",
                   name_of(features.dtype()), "; expected [", item.cloud->size(), ", C] f32");
    PUMICE_EXPECTS(features.extent(1) == clouds[0].features.extent(1), "cloud ", c, " has ",
                   features.extent(1), " features a point and cloud 0 has ",
                   clouds[0].features.extent(1), "; clouds of one batch need the same");
    total += item.cloud->size();
  }
  PUMICE_EXPECTS(total <= std::numeric_limits<std::int32_t>::max(), "a batch of ", total,
                 " points; at most 2^31 - 1 fit, so voxelise fewer clouds at once");
}

Tensor cloud_begins(std::span<const FeaturedCloud> clouds) {
  Tensor begin({static_cast<std::int64_t>(clouds.size()) + 1}, DType::i64);
  std::int64_t* at = begin.data<std::int64_t>();
  *at = 0;
  for (const FeaturedCloud& item : clouds) {
    at[1] = at[0] + item.cloud->size();
    ++at;
  }
  return begin;
}

struct KeyedPoints {
  KeyLayout layout;
  Buffer<std::uint64_t> keys;    // [kept], ascending after `sort`
  Buffer<std::int32_t> points;   // [kept]
};

/// The keys of kept points, sorted, points of one voxel in their old order.
KeyedPoints sorted_keys(const detail::Quantiser& quantiser, std::int64_t clouds) {
  const detail::CellBox box = quantiser.find_box();
  KeyedPoints keyed{layout_for_bounds(3, box.low, box.high, clouds),
                    Buffer<std::uint64_t>(box.kept_points()),
                    Buffer<std::int32_t>(box.kept_points())};
  const KeyLayout layout = keyed.layout;
  parallel_for(
      quantiser.points(), detail::kQuantiseChunk, [&](std::int64_t begin, std::int64_t end) {
        std::int64_t slot = box.before[begin / detail::kQuantiseChunk];
        quantiser.for_each_kept(
            begin, end, [&](std::int64_t point, std::int64_t batch, const std::int32_t* cell) {
              keyed.keys[slot] = encode_key(layout, batch, cell);
              keyed.points[slot] = static_cast<std::int32_t>(point);
              ++slot;
            });
      });
  radix_sort_pairs(keyed.keys.span(), keyed.points.span(), key_bits(layout));
  return keyed;
}

bool starts_voxel(const Buffer<std::uint64_t>& keys, std::int64_t i) {
  return i == 0 || keys[i] != keys[i - 1];
}

/// Number of voxels that start before each chunk of sorted points, and in all.
std::vector<std::int64_t> voxels_before(const Buffer<std::uint64_t>& keys) {
  std::vector<std::int64_t> before(
      static_cast<std::size_t>((keys.size() + kRunChunk - 1) / kRunChunk) + 1, 0);
  parallel_for(keys.size(), kRunChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t starts = 0;
    for (std::int64_t i = begin; i < end; ++i)
      starts += starts_voxel(keys, i) ? 1 : 0;
    before[static_cast<std::size_t>(begin / kRunChunk) + 1] = starts;
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  return before;
}

/// Numbers the voxels in key order: coordinates and both maps.
void number_voxels(const KeyedPoints& keyed, Voxels& voxels) {
  const std::int64_t kept = keyed.keys.size();
  const std::vector<std::int64_t> before = voxels_before(keyed.keys);
  const std::int64_t count = before.back();
  voxels.coordinates = Tensor({count, 4}, DType::i32);
  voxels.voxel_begin = Tensor({count + 1}, DType::i64);
  voxels.voxel_points = Tensor({kept}, DType::i64);
  auto* coordinates = voxels.coordinates.data<std::int32_t>();
  auto* voxel_begin = voxels.voxel_begin.data<std::int64_t>();
  auto* voxel_points = voxels.voxel_points.data<std::int64_t>();
  auto* point_to_voxel = voxels.point_to_voxel.data<std::int64_t>();
  const KeyLayout layout = keyed.layout;
  parallel_for(kept, kRunChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t voxel = before[static_cast<std::size_t>(begin / kRunChunk)] - 1;
    for (std::int64_t i = begin; i < end; ++i) {
      if (starts_voxel(keyed.keys, i)) {
        ++voxel;
        voxel_begin[voxel] = i;
        std::int32_t* row = coordinates + 4 * voxel;
        row[0] = static_cast<std::int32_t>(decode_batch(layout, keyed.keys[i]));
        for (int axis = 0; axis < 3; ++axis) {
          row[axis + 1] = static_cast<std::int32_t>(decode_axis(layout, keyed.keys[i], axis));
        }
      }
      voxel_points[i] = keyed.points[i];
      point_to_voxel[keyed.points[i]] = voxel;
    }
  });
  voxel_begin[count] = kept;
}

}   // namespace

Reduction parse_reduction(std::string_view name) {
  for (const Reduction reduction :
       {Reduction::first, Reduction::mean, Reduction::max, Reduction::sum}) {
    if (name == name_of(reduction)) return reduction;
  }
  detail::raise_user("reduction = \"", name, "\"; choose first, mean, max or sum");
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::first: return "first";
    case Reduction::mean: return "mean";
    case Reduction::max: return "max";
    case Reduction::sum: return "sum";
  }
  detail::raise_internal(std::source_location::current(), "reduction ",
                         static_cast<int>(reduction));
}

Voxels voxelize(const PointCloud& cloud, ConstTensorView features, const VoxelOptions& options) {
  const FeaturedCloud one{&cloud, features};
  return voxelize_batch({&one, 1}, options);
}

Voxels voxelize_batch(std::span<const FeaturedCloud> clouds, const VoxelOptions& options) {
  check_options(options);
  check_clouds(clouds);
  const detail::Quantiser quantiser(clouds, options);
  Voxels voxels;
  voxels.cloud_begin = cloud_begins(clouds);
  const KeyedPoints keyed = sorted_keys(quantiser, static_cast<std::int64_t>(clouds.size()));
  voxels.point_to_voxel = options.range ? Tensor::full({quantiser.points()}, DType::i64, -1)
                                        : Tensor({quantiser.points()}, DType::i64);
  number_voxels(keyed, voxels);
  voxels.features = Tensor({voxels.size(), clouds[0].features.extent(1)}, DType::f32);
  detail::reduce_features(clouds, options.reduction, voxels);
  return voxels;
}

}   // namespace pumice
