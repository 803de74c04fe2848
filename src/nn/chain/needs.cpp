// Describes each link, asks for its plan, and has all of it made at once.
#include "nn/chain/needs.hpp"

#include "nn/chain/link_weight.hpp"
#include "nn/chain/passes.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/planned_call.hpp"

namespace pumice::nn {

ChainNeeds::ChainNeeds(const std::vector<ChainLink>& links, const ChainInput& input,
                       std::span<const ConstTensorView> weights)
    : links_(links), input_(input), weights_(weights), on_device_(is_on_device(input)) {
  if (on_device_) cuda::element_type(input.features.dtype(), "convolution", "features");
}

ConstTensorView ChainNeeds::value(std::size_t number) const {
  if (number == 0) return input_.features;
  if (number == 1) return input_.other;
  const std::size_t link = number - kChainGiven;
  return {nullptr,
          input_.features.dtype(),
          {input_.maps[link].out_rows, weights_[link].extent(2)},
          input_.features.stream()};
}

void ChainNeeds::add(const ConvolutionProblem& problem, const ConvolutionPlan* given,
                     const KernelMapView& map, std::size_t link, PackedWeights* packed) {
  ConvolutionOptions options = options_of(input_);
  options.plan = given;
  const PlanPtr plan = plan_for(problem, map.device, options);
  if (const auto cut = cuda::cut_of(problem, *plan, map)) cuts_.push_back(*cut);
  if (packed == nullptr || LinkWeight::rounds(weights_[link], given, input_.features.dtype()))
    return;
  if (const auto use = cuda::packing_of(problem, *plan))
    packings_.push_back({packed, weights_[link], *use});
}

void ChainNeeds::forward(std::size_t link, PackedWeights* packed) {
  if (!on_device_) return;
  const KernelMapView& map = input_.maps[link];
  add(convolution_problem(value(links_[link].input), weights_[link], map, options_of(input_)),
      links_[link].plans.forward.get(), map, link, packed);
}

void ChainNeeds::input_gradient(std::size_t link, PackedWeights* packed) {
  if (!on_device_) return;
  const KernelMapView& map = input_.maps[link];
  add(convolution_input_gradient_problem(value(kChainGiven + link), weights_[link], map,
                                         options_of(input_)),
      links_[link].plans.input_gradient.get(), transposed(map), link, packed);
}

void ChainNeeds::weight_gradient(std::size_t link) {
  if (!on_device_) return;
  const KernelMapView& map = input_.maps[link];
  add(convolution_weight_gradient_problem(value(links_[link].input), value(kChainGiven + link), map,
                                          options_of(input_)),
      links_[link].plans.weight_gradient.get(), map, link, nullptr);
}

void ChainNeeds::make() {
  if (!on_device_) return;
  cuda::cut_wanted(cuts_);
  jit::DeviceRunner runner(input_.features.stream(), default_allocator(input_.features.device()));
  std::vector<PackWeightArguments> jobs;
  for (const Packing& packing : packings_) {
    const auto job = packing.packed->tiles().make_room(runner, packing.use, packing.weight);
    if (job) jobs.push_back(*job);
  }
  cuda::launch_packing(runner, jobs);
}

}   // namespace pumice::nn
