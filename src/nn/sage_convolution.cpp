#include <pumice/nn/sage_convolution.hpp>

#include "nn/graph_steps.hpp"

namespace pumice::nn {

SageConvolution::SageConvolution(const SageConvolutionSpec& spec) : spec_(spec) {
  PUMICE_EXPECTS(spec.in_channels > 0 && spec.out_channels > 0,
                 "SAGE convolution: in_channels = ", spec.in_channels,
                 ", out_channels = ", spec.out_channels, "; both must be at least 1");
  const auto bias_of = [&](std::int64_t channels) {
    return ParameterSpec{.shape = {channels}, .compute_type = true, .fan_in = spec.in_channels};
  };
  const auto weight_to = [&](std::int64_t channels) {
    return ParameterSpec{.shape = {channels, spec.in_channels}, .fan_in = spec.in_channels};
  };
  if (spec.project) {
    projection_ = add_parameter("lin.weight", weight_to(spec.in_channels));
    projection_bias_ = add_parameter("lin.bias", bias_of(spec.in_channels));
  }
  of_neighbours_ = add_parameter("lin_l.weight", weight_to(spec.out_channels));
  if (spec.bias) bias_ = add_parameter("lin_l.bias", bias_of(spec.out_channels));
  if (spec.root_weight) of_root_ = add_parameter("lin_r.weight", weight_to(spec.out_channels));
}

GraphTensor SageConvolution::forward(const GraphTensor& x, const std::shared_ptr<Graph>& graph,
                                     Context& context) {
  return forward(x, x, graph, context);
}

GraphTensor SageConvolution::forward(const GraphTensor& sources, const GraphTensor& targets,
                                     const std::shared_ptr<Graph>& graph, Context& context) {
  PUMICE_EXPECTS(graph != nullptr, label(), ": the graph is null; give one");
  PUMICE_EXPECTS(sources.features.rows() == graph->view().columns &&
                     targets.features.rows() == graph->view().rows,
                 label(), ": ", sources.features.rows(), " sources and ", targets.features.rows(),
                 " targets have features, and the graph has ", graph->view().columns, " and ",
                 graph->view().rows, "; give one row for each");
  GraphTensor x = sources;
  if (spec_.project)
    x = activated(linear_step(x, projection_, projection_bias_, context), Activation::relu,
                  context);
  const bool is_linear =
      spec_.reduction == EntryReduction::sum || spec_.reduction == EntryReduction::mean;
  // The narrower side goes over edges; of equal sides no sums are kept for the way back.
  if (is_linear && spec_.out_channels <= spec_.in_channels) {
    x = linear_step(x, of_neighbours_, nullptr, context);
    if (of_root_ == nullptr) return reduced(graph, {}, x, spec_.reduction, bias_, context);
    return added_to(linear_step(targets, of_root_, bias_, context), graph, x, spec_.reduction,
                    context);
  }
  x = reduced(graph, {}, x, spec_.reduction, nullptr, context);
  GraphTensor output = linear_step(x, of_neighbours_, bias_, context);
  if (of_root_ == nullptr) return output;
  return sum_of(output, linear_step(targets, of_root_, nullptr, context), context);
}

}   // namespace pumice::nn
