// Three products, one after the other, added to what a target brings itself; and their gradients
// the other way round.
#include <pumice/ops/rgms.hpp>

#include <pumice/core/error.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/linear.hpp>

namespace pumice {
namespace {

/// [edges] or [edges, 1]: one number for each edge.
void check_values(ConstTensorView values, const char* op) {
  PUMICE_EXPECTS(
      !values.defined() || values.rank() == 1 || (values.rank() == 2 && values.extent(1) == 1), op,
      ": values have shape ", to_string(values.shape()), ": give one number for each edge");
}

const TypedRows& segments_of(const TypedGraphView& graph) {
  PUMICE_ENSURES(graph.segments != nullptr, "a view of no typed graph");
  return *graph.segments;
}

LinearOptions as_linear(const TypedLinearOptions& options) {
  return {.numerics = options.numerics};
}

ConstTensorView targets_of(const RootTerm& root, ConstTensorView features) {
  return root.targets.defined() ? root.targets : features;
}

void check_root(const RootTerm& term, const TypedGraphView& graph, ConstTensorView features,
                ConstTensorView weight, const char* op) {
  if (!term.root.defined()) return;
  const std::int64_t rows = graph.scatter.rows;
  PUMICE_EXPECTS(term.targets.defined() || features.rows() == rows, op, ": ", features.rows(),
                 " features are the targets of a graph of ", rows,
                 ": give the features of targets");
  PUMICE_EXPECTS(
      !term.targets.defined() || (term.targets.rank() == 2 && term.targets.rows() == rows), op,
      ": targets has ", term.targets.rank() == 0 ? 0 : term.targets.rows(), " rows and the graph ",
      rows, " targets: give one row for each");
  PUMICE_EXPECTS(
      term.root.rank() == 2 && weight.rank() == 3 && term.root.extent(1) == weight.extent(2), op,
      ": root has shape ", to_string(term.root.shape()), " and weight ", to_string(weight.shape()),
      ": give as many channels out");
}

}   // namespace

RgmsResult rgms(const TypedGraphView& graph, ConstTensorView values, ConstTensorView features,
                ConstTensorView weight, EntryReduction reduction, const TypedLinearOptions& options,
                const RgmsPlaces& places, const RootTerm& root) {
  check_values(values, "rgms");
  check_root(root, graph, features, weight, "rgms");
  SpmmResult gathered = spmm(graph.gather, values, features, reduction,
                             {.output = places.gathered, .source = places.source});
  const Tensor multiplied = typed_linear(gathered.output, weight, segments_of(graph), options);
  RowAddends added{.shift = root.bias};
  Place place = places.output;
  Tensor own;
  if (root.root.defined()) {
    own = linear(targets_of(root, features), root.root, root.bias, as_linear(options), place);
    added = {.residual = own};
    place = own;
  }
  SpmmResult scattered =
      spmm(graph.scatter, {}, multiplied, EntryReduction::sum, {.output = place}, nullptr, added);
  return {.output = std::move(scattered.output),
          .gathered = std::move(gathered.output),
          .source = std::move(gathered.source)};
}

RgmsGradients rgms_gradients(const TypedGraphView& graph, ConstTensorView values,
                             ConstTensorView features, ConstTensorView weight,
                             ConstTensorView gathered, ConstTensorView source,
                             ConstTensorView grad_output, EntryReduction reduction,
                             const RgmsWanted& wanted, const TypedLinearOptions& options,
                             const RgmsGradientPlaces& places, const RootTerm& root) {
  check_values(values, "rgms_gradients");
  RgmsGradients made;
  const bool has_root = root.root.defined();
  if (wanted.bias && root.bias.defined())
    made.bias = linear_bias_gradient(grad_output, nullptr, places.bias);
  if (wanted.root && has_root) {
    made.root = linear_weight_gradient(targets_of(root, features), grad_output, as_linear(options),
                                       places.root);
  }
  if (wanted.targets && has_root && root.targets.defined()) {
    made.targets =
        linear_input_gradient(grad_output, root.root, as_linear(options), places.targets);
  }
  const bool of_values = wanted.values && values.defined();
  if (!wanted.weight && !wanted.features && !of_values) return made;
  Tensor of_multiplied =
      spmm_features_gradient(graph.scatter, graph.scatter_backwards, {}, grad_output);
  if (wanted.weight) {
    made.weight = typed_linear_weight_gradient(gathered, of_multiplied, segments_of(graph), options,
                                               places.weight);
  }
  if (!wanted.features && !of_values) return made;
  const Tensor of_gathered =
      typed_linear_input_gradient(of_multiplied, weight, segments_of(graph), options);
  of_multiplied = {};
  if (of_values) {
    made.values = spmm_values_gradient(graph.gather, features, of_gathered, 1, source, reduction,
                                       places.values);
  }
  if (!wanted.features) return made;
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  if (!has_root || root.targets.defined() || picks) {
    made.features = spmm_features_gradient(graph.gather, graph.gather_backwards, values,
                                           of_gathered, source, reduction, places.features);
    if (has_root && !root.targets.defined()) {
      add_in_place(made.features.view(),
                   linear_input_gradient(grad_output, root.root, as_linear(options)));
    }
    return made;
  }
  made.features =
      linear_input_gradient(grad_output, root.root, as_linear(options), places.features);
  (void)spmm_features_gradient(graph.gather, graph.gather_backwards, values, of_gathered, source,
                               reduction, made.features, nullptr, {.residual = made.features});
  return made;
}

}   // namespace pumice
