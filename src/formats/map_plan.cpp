// The public face of plans of sets and maps.
#include <pumice/formats/map_plan.hpp>

#include <utility>

#include "formats/cuda/map_plan.hpp"

namespace pumice {

MapPlan::MapPlan(const MapCache& maps, const CoordinateSetPtr& input, const PlanRoom& room,
                 const MapPlan* earlier)
    : plan_(std::make_shared<const cuda::MapPlan>(
          maps, input, room, earlier == nullptr ? nullptr : earlier->plan_.get())) {}

MapPlan::Made MapPlan::make(const Tensor& coordinates, const RowCount& rows) const {
  cuda::MapPlan::Made made = plan_->make(coordinates, rows);
  return {std::move(made.input), std::move(made.maps)};
}

MapPlan::Made MapPlan::make(const ConstTensorView& points, const ConstTensorView& batch,
                            const RowCount& count, const VoxelSiteOptions& options,
                            const Place& row_of) const {
  cuda::MapPlan::Made made = plan_->make(points, batch, count, options, row_of);
  return {std::move(made.input), std::move(made.maps), std::move(made.row_of)};
}

std::vector<std::int64_t> MapPlan::capacities() const {
  return plan_->capacities();
}

}   // namespace pumice
