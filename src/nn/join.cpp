// Sums and concatenations of two branches, and their gradients.
#include <pumice/nn/join.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <pumice/ops/elementwise.hpp>

#include "nn/layer_timer.hpp"

namespace pumice::nn {
namespace {

void check_same_sites(const char* what, const SparseTensor& left, const SparseTensor& right) {
  if (left.coordinates == right.coordinates) return;
  PUMICE_EXPECTS(left.coordinates->same_rows(*right.coordinates), what, ": the tensors have ",
                 left.rows(), " and ", right.rows(), " rows on different sites; use unite_", what,
                 " to meet on the union of both");
}

void check_types(const char* what, const SparseTensor& left, const SparseTensor& right) {
  PUMICE_EXPECTS(left.dtype() == right.dtype(), what, ": features are ", name_of(left.dtype()),
                 " and ", name_of(right.dtype()), "; convert one with to()");
}

void check_channels(const char* what, const SparseTensor& left, const SparseTensor& right) {
  PUMICE_EXPECTS(left.channels() == right.channels(), what, ": features have ", left.channels(),
                 " and ", right.channels(), " channels; they must have as many");
}

NodePtr record(const Context& context, const SparseTensor& left, const SparseTensor& right,
               Backward backward) {
  if (!context.record || (left.node == nullptr && right.node == nullptr)) return nullptr;
  return std::make_shared<Node>(std::vector{left.node, right.node}, std::move(backward));
}

/// Of copies, which share their features.
void close_tails(SparseTensor left, SparseTensor right) {
  close_tail(left);
  if (right.features.raw() != left.features.raw()) close_tail(right);
}

void pass_on(const NodePtr& left, const NodePtr& right, Tensor to_left, Tensor to_right) {
  if (left != nullptr) left->accumulate(std::move(to_left));
  if (right != nullptr) right->accumulate(std::move(to_right));
}

}   // namespace

void check_concatenable(const SparseTensor& left, const SparseTensor& right) {
  check_same_sites("concatenate", left, right);
  check_types("concatenate", left, right);
}

SparseTensor concatenate(const SparseTensor& left, const SparseTensor& right, Context& context) {
  check_concatenable(left, right);
  close_tails(left, right);
  LayerTimer timer(context, "", left, 0);
  const std::array<std::int64_t, 2> channels{left.channels(), right.channels()};
  NodePtr node = record(context, left, right,
                        [to_left = left.node, to_right = right.node, channels](const Tensor& grad) {
                          std::vector<Tensor> parts = split(grad, channels);
                          pass_on(to_left, to_right, std::move(parts[0]), std::move(parts[1]));
                        });
  SparseTensor result =
      left.with(pumice::concatenate(left.features.view(), right.features.view()), std::move(node));
  result.has_open_tail = false;
  timer.finish("concatenate", result);
  return result;
}

SparseTensor add(const SparseTensor& left, const SparseTensor& right, Context& context) {
  check_same_sites("add", left, right);
  check_types("add", left, right);
  check_channels("add", left, right);
  close_tails(left, right);
  LayerTimer timer(context, "", left, 0);
  NodePtr node = record(context, left, right,
                        [to_left = left.node, to_right = right.node](const Tensor& grad) {
                          pass_on(to_left, to_right, grad, grad);
                        });
  SparseTensor result =
      left.with(pumice::add(left.features.view(), right.features.view()), std::move(node));
  result.has_open_tail = false;
  timer.finish("add", result);
  return result;
}

SparseTensor unite_concatenate(const SparseTensor& left, const SparseTensor& right,
                               Context& context) {
  check_types("unite_concatenate", left, right);
  LayerTimer timer(context, "", left, 0);
  const auto sites = std::make_shared<UnionSet>(unite(*left.coordinates, *right.coordinates));
  NodePtr node = record(context, left, right,
                        [to_left = left.node, to_right = right.node, sites,
                         channels = left.channels()](const Tensor& grad) {
                          UnionGradients parts = union_concatenate_gradient(grad, channels, *sites);
                          pass_on(to_left, to_right, std::move(parts.left), std::move(parts.right));
                        });
  SparseTensor result = left.with(
      sites->set, pumice::concatenate(left.features, right.features, *sites), std::move(node));
  timer.finish("concatenate on union", result);
  return result;
}

SparseTensor unite_add(const SparseTensor& left, const SparseTensor& right, Context& context) {
  check_types("unite_add", left, right);
  check_channels("unite_add", left, right);
  LayerTimer timer(context, "", left, 0);
  const auto sites = std::make_shared<UnionSet>(unite(*left.coordinates, *right.coordinates));
  NodePtr node = record(context, left, right,
                        [to_left = left.node, to_right = right.node, sites](const Tensor& grad) {
                          UnionGradients parts = union_add_gradient(grad, *sites);
                          pass_on(to_left, to_right, std::move(parts.left), std::move(parts.right));
                        });
  SparseTensor result =
      left.with(sites->set, pumice::add(left.features, right.features, *sites), std::move(node));
  timer.finish("add on union", result);
  return result;
}

}   // namespace pumice::nn
