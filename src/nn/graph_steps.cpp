#include "nn/graph_steps.hpp"

#include <utility>
#include <vector>

#include <pumice/ops/activation.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/rgms.hpp>
#include <pumice/ops/rows.hpp>
#include <pumice/ops/spmm.hpp>

namespace pumice::nn {
namespace {

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView{};
}

ConstTensorView value_view(const ParameterPtr& parameter) {
  return parameter == nullptr ? ConstTensorView{} : std::as_const(*parameter).value().view();
}

/// With a node only where the context records.
GraphTensor step(Tensor value, std::vector<NodePtr> inputs, const Context& context,
                 Backward backward) {
  if (!context.record) return {std::move(value)};
  return {std::move(value), std::make_shared<Node>(std::move(inputs), std::move(backward))};
}

void pass_on(const NodePtr& node, Tensor gradient) {
  if (node != nullptr) node->accumulate(std::move(gradient));
}

}   // namespace

GraphTensor value_of(const ParameterPtr& parameter, const Context& context) {
  return step(std::as_const(*parameter).value(), {}, context,
              [parameter](const Tensor& gradient) { parameter->accumulate(gradient); });
}

GraphTensor product(const GraphTensor& x, const GraphTensor& weight, const Context& context) {
  const LinearOptions options{.numerics = context.numerics};
  return step(linear(x.features, weight.features, {}, options), {x.node, weight.node}, context,
              [x, weight, options](const Tensor& gradient) {
                if (weight.node != nullptr)
                  weight.node->accumulate(linear_weight_gradient(x.features, gradient, options));
                if (x.node != nullptr)
                  x.node->accumulate(linear_input_gradient(gradient, weight.features, options));
              });
}

GraphTensor linear_step(const GraphTensor& x, const ParameterPtr& weight, const ParameterPtr& bias,
                        const Context& context) {
  const LinearOptions options{.numerics = context.numerics};
  return step(linear_transposed(x.features, value_view(weight), value_view(bias), options),
              {x.node}, context, [x, weight, bias, options](const Tensor& gradient) {
                weight->accumulate(linear_weight_gradient(gradient, x.features, options));
                if (bias != nullptr) bias->accumulate(linear_bias_gradient(gradient));
                if (x.node != nullptr) {
                  x.node->accumulate(
                      linear_transposed_input_gradient(gradient, value_view(weight), options));
                }
              });
}

GraphTensor sum_of(const GraphTensor& left, const GraphTensor& right, const Context& context) {
  return step(add(left.features, right.features), {left.node, right.node}, context,
              [left = left.node, right = right.node](const Tensor& gradient) {
                pass_on(left, gradient);
                pass_on(right, gradient);
              });
}

GraphTensor activated(const GraphTensor& x, Activation activation, const Context& context) {
  return step(activate(x.features, activation), {x.node}, context,
              [x, activation](const Tensor& gradient) {
                pass_on(x.node, activation_gradient(x.features, gradient, activation));
              });
}

GraphTensor reshaped(const GraphTensor& x, const Shape& shape, const Context& context) {
  return step(x.features.reshaped(shape), {x.node}, context,
              [node = x.node, before = x.features.shape()](const Tensor& gradient) {
                pass_on(node, gradient.reshaped(before));
              });
}

GraphTensor picked(const GraphTensor& x, const Tensor& rows, const Context& context) {
  return step(take_rows(x.features, rows), {x.node}, context,
              [node = x.node, rows, count = x.features.rows()](const Tensor& gradient) {
                pass_on(node, scatter_rows(gradient, rows, count));
              });
}

GraphTensor reduced(const std::shared_ptr<Graph>& graph, const Tensor& values, const GraphTensor& x,
                    EntryReduction reduction, const ParameterPtr& bias, const Context& context) {
  SpmmResult made = spmm(graph->view(), view_of(values), x.features, reduction, {}, nullptr,
                         {.shift = value_view(bias)});
  return step(
      std::move(made.output), {x.node}, context,
      [graph, values, node = x.node, source = std::move(made.source), reduction,
       bias](const Tensor& gradient) {
        if (bias != nullptr) bias->accumulate(linear_bias_gradient(gradient));
        if (node == nullptr) return;
        const auto backwards = graph->backwards();
        node->accumulate(spmm_features_gradient(graph->view(), backwards->view(), view_of(values),
                                                gradient, view_of(source), reduction));
      });
}

GraphTensor added_to(const GraphTensor& own, const std::shared_ptr<Graph>& graph,
                     const GraphTensor& x, EntryReduction reduction, const Context& context) {
  SpmmResult made = spmm(graph->view(), {}, x.features, reduction, {.output = own.features},
                         nullptr, {.residual = own.features});
  return step(std::move(made.output), {own.node, x.node}, context,
              [graph, own = own.node, node = x.node, reduction](const Tensor& gradient) {
                pass_on(own, gradient);
                if (node == nullptr) return;
                const auto backwards = graph->backwards();
                node->accumulate(spmm_features_gradient(graph->view(), backwards->view(), {},
                                                        gradient, {}, reduction));
              });
}

GraphTensor relational(const std::shared_ptr<TypedGraph>& graph, const GraphTensor& x,
                       const GraphTensor& weight, EntryReduction reduction,
                       const ParameterPtr& root, const ParameterPtr& bias, const Context& context) {
  const TypedLinearOptions options{.numerics = context.numerics};
  const auto term = [root, bias] {
    return RootTerm{.root = value_view(root), .bias = value_view(bias)};
  };
  RgmsResult made =
      rgms(graph->view(), {}, x.features, weight.features, reduction, options, {}, term());
  return step(std::move(made.output), {x.node, weight.node}, context,
              [graph, x, weight, root, bias, gathered = std::move(made.gathered),
               source = std::move(made.source), reduction, options, term](const Tensor& gradient) {
                RgmsGradients of = rgms_gradients(
                    graph->view_both_ways(), {}, x.features, weight.features, gathered,
                    view_of(source), gradient, reduction,
                    {.features = x.node != nullptr, .weight = weight.node != nullptr}, options, {},
                    term());
                pass_on(x.node, std::move(of.features));
                pass_on(weight.node, std::move(of.weight));
                if (root != nullptr) root->accumulate(std::move(of.root));
                if (bias != nullptr) bias->accumulate(std::move(of.bias));
              });
}

GraphTensor looked_up(const std::shared_ptr<TypedGraph>& graph, const GraphTensor& x,
                      EntryReduction reduction, const ParameterPtr& root, const ParameterPtr& bias,
                      const Context& context) {
  SpmmResult gathered = spmm(graph->view().gather, {}, x.features, reduction);
  SpmmResult made = spmm(graph->view().scatter, {}, gathered.output, EntryReduction::sum, {},
                         nullptr, {.shift = value_view(bias), .residual = value_view(root)});
  return step(std::move(made.output), {x.node}, context,
              [graph, node = x.node, source = std::move(gathered.source), reduction, root,
               bias](const Tensor& gradient) {
                if (root != nullptr) root->accumulate(gradient);
                if (bias != nullptr) bias->accumulate(linear_bias_gradient(gradient));
                if (node == nullptr) return;
                const TypedGraphView both = graph->view_both_ways();
                const Tensor of_segments =
                    spmm_features_gradient(both.scatter, both.scatter_backwards, {}, gradient);
                node->accumulate(spmm_features_gradient(both.gather, both.gather_backwards, {},
                                                        of_segments, view_of(source), reduction));
              });
}

}   // namespace pumice::nn
