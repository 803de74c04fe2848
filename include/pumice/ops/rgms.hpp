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

/// What a target brings itself: targets · root + bias. Without a root, the bias; without either,
/// nothing.
struct RootTerm {
  ConstTensorView targets{};   // [targets, C_root]; undefined: the features, of sources
  ConstTensorView root{};      // [C_root, C_out] of the features' type; undefined: none
  ConstTensorView bias{};      // compute type [C_out]; undefined: none
};

/// output[t] = Σ over types of (the sum, mean, max or min of value[e] · features[source of e] over
/// the edges of that type that lead to t) · weight[type]; 0 where none leads. features: [sources,
/// C_in] of f64, f32, f16 or bf16; weight: [types, C_in, C_out]; values: [edges] of that type, or
/// undefined: ones. The term of the `root` is made first, and sums are added to it where it lies.
/// UserError names the argument that does not fit.
RgmsResult rgms(const TypedGraphView& graph, ConstTensorView values, ConstTensorView features,
                ConstTensorView weight, EntryReduction reduction = EntryReduction::sum,
                const TypedLinearOptions& options = {}, const RgmsPlaces& places = {},
                const RootTerm& root = {});

/// Which gradients are wanted; the others are undefined in what comes back.
struct RgmsWanted {
  bool features = true;
  bool weight = true;
  bool values = true;   // where there are values
  // Where there is one:
  bool targets = true;   // where they are not the features, whose gradient has it all
  bool root = true;
  bool bias = true;
};
struct RgmsGradients {
  Tensor features, weight, values, targets, root, bias;
};
struct RgmsGradientPlaces {
  Place features{}, weight{}, values{}, targets{}, root{}, bias{};
};

/// `graph` with its transposes; `gathered` and `source` are what rgms returned. That of the bias
/// has the compute type.
RgmsGradients rgms_gradients(const TypedGraphView& graph, ConstTensorView values,
                             ConstTensorView features, ConstTensorView weight,
                             ConstTensorView gathered, ConstTensorView source,
                             ConstTensorView grad_output,
                             EntryReduction reduction = EntryReduction::sum,
                             const RgmsWanted& wanted = {}, const TypedLinearOptions& options = {},
                             const RgmsGradientPlaces& places = {}, const RootTerm& root = {});

}   // namespace pumice
