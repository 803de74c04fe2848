// Reverse-mode gradients. While a context records, every layer leaves a node that knows its inputs
// and how to push a gradient back to them; without recording nothing is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <pumice/core/tensor.hpp>

namespace pumice::nn {

class Node;
using NodePtr = std::shared_ptr<Node>;

/// Pushes the gradient of a node's value to the nodes and parameters it was computed from. Holds
/// whatever the forward pass saved; dropped as soon as it has run.
using Backward = std::function<void(const Tensor& gradient)>;

/// A value whose gradient is wanted.
class Node {
 public:
  /// A leaf: keeps its gradient for whoever asks.
  Node() = default;
  /// A value computed from `inputs` (null ones want no gradient and are left out).
  Node(std::vector<NodePtr> inputs, Backward backward);

  /// Adds to the gradient; the first one is shared, not copied.
  void accumulate(Tensor gradient);
  /// Undefined until something was accumulated, and again once an inner node has passed it on.
  const Tensor& gradient() const { return gradient_; }
  bool is_leaf() const { return leaf_; }

 private:
  friend void backward(const NodePtr& root, Tensor gradient);
  std::vector<NodePtr> inputs_{};
  Backward backward_{};
  Tensor gradient_{};
  std::int64_t depth_ = 0;   // 1 + the deepest input: an order in which users precede their inputs
  bool leaf_ = true;
};

/// Runs the recorded layers backwards from `root`, whose gradient is `gradient`. The order depends
/// on the graph alone, so sums of gradients have the same bits each time. A graph runs once:
/// UserError the second time.
void backward(const NodePtr& root, Tensor gradient);

}   // namespace pumice::nn
