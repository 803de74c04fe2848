// One layer through every dataflow: the same features, and what the plan says about each.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

namespace {

using namespace pumice;

double largest_difference(const Tensor& left, const Tensor& right) {
  double largest = 0;
  for (std::int64_t i = 0; i < left.elements(); ++i) {
    largest = std::max<double>(largest, std::abs(left.data<float>()[i] - right.data<float>()[i]));
  }
  return largest;
}

}   // namespace

int main() {
  const PointCloud sweep = simulate({.seed = 1});
  const Voxels voxels = voxelize(sweep, point_features(sweep), {.size = {0.1f, 0.1f, 0.1f}});
  const CoordinateSetPtr sites = CoordinateSet::create(voxels.coordinates);
  const KernelMapPtr map = submanifold_map(sites, submanifold_window(3, axes(3, 3), axes(3, 1)));
  const Tensor weight = Tensor::full({27, 4, 32}, DType::f32, 0.01);

  const Target& target = target_of(Device{});   // this CPU
  const ConvolutionProblem problem = convolution_problem(voxels.features, weight, map->view());
  std::cout << explain(problem, target, *choose(problem, target)) << '\n';

  const Tensor expected = convolution(voxels.features, weight, map->view());
  for (const Dataflow dataflow :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    const PlanPtr plan = choose(problem, target, dataflow);
    const Tensor features = convolution(voxels.features, weight, map->view(), {.plan = plan.get()});
    const double difference = largest_difference(features, expected);
    std::cout << plan->name() << ": differs by " << difference << '\n';
    if (difference > 1e-4) return 1;   // sums of up to 108 products of some 50 m times 0.01
  }
}
