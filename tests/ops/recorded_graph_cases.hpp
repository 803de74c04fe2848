// Operators on graphs, to be recorded, and the list of all cases.
#pragma once

#include <vector>

#include "ops/recorded_cases.hpp"

namespace pumice::test {
namespace recorded {

inline void add_graph_cases(std::vector<RecordedCase>& cases) {
  cases.push_back(
      {"products of sparse matrices",
       {"spmm", "spmm_features_gradient", "spmm_values_gradient", "sddmm"},
       [](RecordedInputs& in, Outputs& out) {
         const RecordedGraph& graph = in.graph;
         const CsrView view = graph.forward.view(), back = graph.back.view();
         for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::max}) {
           const SpmmResult made = spmm(view, graph.values, in.x, reduction);
           const ConstTensorView source =
               made.source.defined() ? made.source.view() : ConstTensorView();
           out.insert(
               out.end(),
               {made.output,
                spmm_features_gradient(view, back, graph.values, in.y, source, reduction),
                spmm_values_gradient(view, in.x, in.y, RecordedGraph::kHeads, source, reduction)});
         }
         out.push_back(sddmm(view, in.x, in.y, RecordedGraph::kHeads));
       }});
  cases.push_back(
      {"products over parts", {}, [](RecordedInputs& in, Outputs& out) {
         const RecordedGraph& graph = in.graph;
         for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::max})
           out.push_back(spmm(graph.parts, graph.values, in.x, reduction).output);
         out.push_back(sddmm(graph.parts, in.x, in.y, RecordedGraph::kHeads));
       }});
  cases.push_back({"patterns", {}, [](RecordedInputs& in, Outputs& out) {
                     const RecordedGraph& graph = in.graph;
                     const Csr made(in.x.rows(), in.x.rows(), graph.row, graph.column);
                     const Csr turned = transposed(made.view(), in.stream);
                     out.push_back(spmm(made.view(), graph.values, in.x).output);
                     out.push_back(spmm(turned.view(), graph.values, in.x).output);
                   }});
  cases.push_back({"attention",
                   {"edge_softmax", "edge_softmax_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const RecordedGraph& graph = in.graph;
                     const EdgeScores scores{graph.scores, graph.scores, graph.values, 0.2};
                     const Tensor shares = edge_softmax(graph.forward.view(), scores);
                     const EdgeScoreGradients made =
                         edge_softmax_gradient(graph.forward.view(), graph.back.view(), scores,
                                               shares, graph.grad_values);
                     out.insert(out.end(), {shares, made.target, made.source, made.entry});
                   }});
  cases.push_back({"additive attention",
                   {"edge_scores", "edge_scores_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const RecordedGraph& graph = in.graph;
                     const AdditiveScores scores{in.x, in.y, graph.attention, {}, 0.2};
                     const CsrView view = graph.forward.view();
                     const AdditiveScoreGradients made =
                         edge_scores_gradient(view, graph.back.view(), scores, graph.grad_values);
                     out.insert(out.end(), {edge_scores(view, scores), made.target, made.source,
                                            made.attention});
                   }});
  cases.push_back({"typed rows",
                   {"typed_linear", "typed_linear_input_gradient", "typed_linear_weight_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const RecordedGraph& graph = in.graph;
                     const TypedLinearOptions fixed{.numerics = {.deterministic = true}};
                     out.insert(out.end(),
                                {typed_linear(in.x, graph.weight, *graph.types),
                                 typed_linear_input_gradient(in.y, graph.weight, *graph.types),
                                 typed_linear_weight_gradient(in.x, in.y, *graph.types, fixed)});
                   }});
}

inline void add_relational_cases(std::vector<RecordedCase>& cases) {
  cases.push_back(
      {"relational products", {"rgms", "rgms_gradients"}, [](RecordedInputs& in, Outputs& out) {
         TypedGraph& graph = *in.graph.typed;
         const TypedLinearOptions fixed{.numerics = {.deterministic = true}};
         const ConstTensorView stored = in.graph.weight;
         const RootTerm root{// the matrix of the first relation
                             .root = {stored.raw(),
                                      stored.dtype(),
                                      {stored.extent(1), stored.extent(2)},
                                      stored.stream()}};
         for (const RootTerm& term : {RootTerm{}, root}) {
           const RgmsResult made =
               rgms(graph.view(), {}, in.x, stored, EntryReduction::mean, fixed, {}, term);
           const RgmsGradients gradients =
               rgms_gradients(graph.view_both_ways(), {}, in.x, stored, made.gathered, {}, in.y,
                              EntryReduction::mean, {}, fixed, {}, term);
           out.insert(out.end(), {made.output, gradients.features, gradients.weight});
         }
       }});
}

}   // namespace recorded

inline std::vector<RecordedCase> recorded_cases() {
  std::vector<RecordedCase> cases;
  recorded::add_map_cases(cases);
  recorded::add_plans(cases);
  recorded::add_making_cases(cases);
  recorded::add_norm_cases(cases);
  recorded::add_loss_cases(cases);
  recorded::add_elementwise_cases(cases);
  recorded::add_item_cases(cases);
  recorded::add_row_cases(cases);
  recorded::add_graph_cases(cases);
  recorded::add_relational_cases(cases);
  return cases;
}

}   // namespace pumice::test
