// Describes each link, asks for its plan, and has all of it made at once.
#include "nn/chain/needs.hpp"

#include "nn/chain/link_weight.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/planned_call.hpp"

namespace pumice::nn {

ChainNeeds::ChainNeeds(const Chain& chain, const ChainInput& input,
                       std::span<const ConstTensorView> weights)
    : chain_(chain),
      input_(input),
      weights_(weights),
      shapes_(chain.structure(), input, weights),
      on_device_(is_on_device(input)) {
  if (on_device_) cuda::element_type(input.features.dtype(), "convolution", "features");
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
  add(convolution_problem(source(link), weights_[link], map, options_of(input_)),
      link_at(link).plans.forward.get(), map, link, packed);
}

void ChainNeeds::forward(std::size_t link, const Fusions& fusions, const Scales& scales,
                         std::vector<PackedWeights>& packed) {
  if (!on_device_) return;
  const std::optional<std::size_t> shortcut = fusions.shortcut_of(link);
  ConvolutionOptions options = options_of(input_);
  fusions.set_inputs(options, link, shortcut, shapes_);
  if (!shortcut && !options.second.defined()) return forward(link, at(packed, link));
  options.plan = link_at(link).plans.forward.get();
  const KernelMapView& map = input_.maps[link];
  const ConvolutionProblem problem =
      convolution_problem(fusions.features_of(link, shapes_), weights_[link], map, options);
  const PlanPtr plan = plan_for(problem, map.device, options);
  if (const auto cut = cuda::cut_of(problem, *plan, map)) cuts_.push_back(*cut);
  const auto pack = [&](std::size_t of, cuda::PackUse use, const ConstTensorView& scale) {
    if (shortcut) use.order.scale = scale.data<float>();
    packings_.push_back({&packed[of], weights_[of], use});
  };
  if (const auto use = cuda::packing_of(problem, *plan)) pack(link, *use, scales.own);
  if (shortcut) pack(*shortcut, cuda::shortcut_packing_of(problem, *plan), scales.shortcut);
}

void ChainNeeds::input_gradient(std::size_t link, PackedWeights* packed) {
  if (!on_device_) return;
  const KernelMapView& map = input_.maps[link];
  add(convolution_input_gradient_problem(made_by(link), weights_[link], map, options_of(input_)),
      link_at(link).plans.input_gradient.get(), transposed(map), link, packed);
}

void ChainNeeds::weight_gradient(std::size_t link) {
  if (!on_device_) return;
  const KernelMapView& map = input_.maps[link];
  add(convolution_weight_gradient_problem(source(link), made_by(link), map, options_of(input_)),
      link_at(link).plans.weight_gradient.get(), map, link, nullptr);
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
