// A layer whose plans are read from a text, as a file may hold it: exactly these run.
#include <iostream>
#include <memory>

#include <pumice/nn/convolution.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/tape.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

int main() {
  using namespace pumice;
  const PointCloud sweep = simulate({.seed = 1});
  const Voxels voxels = voxelize(sweep, point_features(sweep), {.size = {0.1f, 0.1f, 0.1f}});
  nn::SparseTensor x(CoordinateSet::create(voxels.coordinates), voxels.features);

  nn::Convolution layer(nn::submanifold(4, 32));
  nn::initialize(layer, 1);
  layer.set_plans(
      parse_layer_plans(R"({"forward": {"dataflow": "fetch_on_demand", "tile_rows": 512},
                                        "weight_gradient": {"dataflow": "sum_over_pairs"}})"));

  nn::Context context{.record = true};
  x.node = std::make_shared<nn::Node>();
  PlanRecord record;   // of this thread, as long as it lives
  const nn::SparseTensor y = layer.forward(x, context);
  nn::backward(y.node, y.features);
  for (const RanPlan& ran : record.take())
    std::cout << name_of(ran.direction) << ": " << ran.plan->name() << '\n';
}
