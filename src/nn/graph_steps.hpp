// What layers of graphs are made of: operators on features, or on parameters, that leave a node of
// the tape where a context records.
#pragma once

#include <memory>

#include <pumice/formats/typed_graph.hpp>
#include <pumice/graphs/graph.hpp>
#include <pumice/kernels/epilogue.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/nn/context.hpp>
#include <pumice/nn/graph_tensor.hpp>
#include <pumice/nn/parameter.hpp>

namespace pumice::nn {

/// Its gradient goes to the parameter.
GraphTensor value_of(const ParameterPtr& parameter, const Context& context);

/// x [N, K] · weight [K, M].
GraphTensor product(const GraphTensor& x, const GraphTensor& weight, const Context& context);
/// x · weightᵀ + bias, weight [M, K] as PyTorch stores it; `bias` null: 0.
GraphTensor linear_step(const GraphTensor& x, const ParameterPtr& weight, const ParameterPtr& bias,
                        const Context& context);
GraphTensor sum_of(const GraphTensor& left, const GraphTensor& right, const Context& context);
GraphTensor activated(const GraphTensor& x, Activation activation, const Context& context);
GraphTensor reshaped(const GraphTensor& x, const Shape& shape, const Context& context);
/// Rows by their numbers, i64, -1 for zeros.
GraphTensor picked(const GraphTensor& x, const Tensor& rows, const Context& context);

/// A product with a pattern; `values` [entries] or undefined, which get no gradient. To every row
/// of a sum or mean a `bias` [C] is added; null: none.
GraphTensor reduced(const std::shared_ptr<Graph>& graph, const Tensor& values, const GraphTensor& x,
                    EntryReduction reduction, const ParameterPtr& bias, const Context& context);
/// A sum or mean without values, added to the rows of `own` [rows, C] where they lie: they are
/// written over, so nothing may have kept them but the step that made them.
GraphTensor added_to(const GraphTensor& own, const std::shared_ptr<Graph>& graph,
                     const GraphTensor& x, EntryReduction reduction, const Context& context);
/// A relational product with weight [relations, C_in, C_out], + x · root + bias; null: none.
GraphTensor relational(const std::shared_ptr<TypedGraph>& graph, const GraphTensor& x,
                       const GraphTensor& weight, EntryReduction reduction,
                       const ParameterPtr& root, const ParameterPtr& bias, const Context& context);
/// Rows of x [columns, C] reduced for each segment, and these added up for each target, + root
/// [targets, C] + bias; null: none.
GraphTensor looked_up(const std::shared_ptr<TypedGraph>& graph, const GraphTensor& x,
                      EntryReduction reduction, const ParameterPtr& root, const ParameterPtr& bias,
                      const Context& context);

}   // namespace pumice::nn
