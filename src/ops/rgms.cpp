// Three products, one after the other, and their gradients the other way round.
#include <pumice/ops/rgms.hpp>

#include <pumice/core/error.hpp>

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

}   // namespace

RgmsResult rgms(const TypedGraphView& graph, ConstTensorView values, ConstTensorView features,
                ConstTensorView weight, EntryReduction reduction, const TypedLinearOptions& options,
                const RgmsPlaces& places) {
  check_values(values, "rgms");
  SpmmResult gathered = spmm(graph.gather, values, features, reduction,
                             {.output = places.gathered, .source = places.source});
  const Tensor multiplied = typed_linear(gathered.output, weight, segments_of(graph), options);
  SpmmResult scattered =
      spmm(graph.scatter, {}, multiplied, EntryReduction::sum, {.output = places.output});
  return {.output = std::move(scattered.output),
          .gathered = std::move(gathered.output),
          .source = std::move(gathered.source)};
}

RgmsGradients rgms_gradients(const TypedGraphView& graph, ConstTensorView values,
                             ConstTensorView features, ConstTensorView weight,
                             ConstTensorView gathered, ConstTensorView source,
                             ConstTensorView grad_output, EntryReduction reduction,
                             const RgmsWanted& wanted, const TypedLinearOptions& options,
                             const RgmsGradientPlaces& places) {
  check_values(values, "rgms_gradients");
  const Tensor of_multiplied =
      spmm_features_gradient(graph.scatter, graph.scatter_backwards, {}, grad_output);
  RgmsGradients made;
  if (wanted.weight) {
    made.weight = typed_linear_weight_gradient(gathered, of_multiplied, segments_of(graph), options,
                                               places.weight);
  }
  const bool of_values = wanted.values && values.defined();
  if (!wanted.features && !of_values) return made;
  const Tensor of_gathered =
      typed_linear_input_gradient(of_multiplied, weight, segments_of(graph), options);
  if (wanted.features) {
    made.features = spmm_features_gradient(graph.gather, graph.gather_backwards, values,
                                           of_gathered, source, reduction, places.features);
  }
  if (of_values) {
    made.values = spmm_values_gradient(graph.gather, features, of_gathered, 1, source, reduction,
                                       places.values);
  }
  return made;
}

}   // namespace pumice
