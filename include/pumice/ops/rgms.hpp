// Relational products, gathered, multiplied and scattered: what relational graph convolutions are
// made of. They run where the graph is; on a device they are enqueued on the stream of the
// features, in f32, f16 or bf16.
#pragma once

#include <pumice/formats/typed_graph.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/ops/typed_linear.hpp>

namespace pumice {

struct RgmsResult {
  Tensor output;     // [targets, C_out]
  Tensor gathered;   // [segments, C_in], for the gradients
  Tensor source;     // max, min: i64 [segments, C_in], the edges that were picked; else undefined
};
struct RgmsPlaces {
  Place output{}, gathered{}, source{};
};

/// output[t] = Σ over types of (the sum, mean, max or min of value[e] · features[source of e] over
/// the edges of that type that lead to t) · weight[type]; 0 where none leads. features: [sources,
/// C_in] of f64, f32, f16 or bf16; weight: [types, C_in, C_out]; values: [edges] of that type, or
/// undefined: ones. UserError names the argument that does not fit.
RgmsResult rgms(const TypedGraphView& graph, ConstTensorView values, ConstTensorView features,
                ConstTensorView weight, EntryReduction reduction = EntryReduction::sum,
                const TypedLinearOptions& options = {}, const RgmsPlaces& places = {});

/// Which gradients are wanted; the others are undefined in what comes back.
struct RgmsWanted {
  bool features = true;
  bool weight = true;
  bool values = true;   // where there are values
};
struct RgmsGradients {
  Tensor features, weight, values;
};
struct RgmsGradientPlaces {
  Place features{}, weight{}, values{};
};

/// `graph` with its transposes; `gathered` and `source` are what rgms returned.
RgmsGradients rgms_gradients(const TypedGraphView& graph, ConstTensorView values,
                             ConstTensorView features, ConstTensorView weight,
                             ConstTensorView gathered, ConstTensorView source,
                             ConstTensorView grad_output,
                             EntryReduction reduction = EntryReduction::sum,
                             const RgmsWanted& wanted = {}, const TypedLinearOptions& options = {},
                             const RgmsGradientPlaces& places = {});

}   // namespace pumice
