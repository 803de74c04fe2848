// Walking recorded layers backwards.
#include <pumice/nn/tape.hpp>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <pumice/ops/elementwise.hpp>

namespace pumice::nn {

Node::Node(std::vector<NodePtr> inputs, Backward backward)
    : inputs_(std::move(inputs)), backward_(std::move(backward)), leaf_(false) {
  std::erase(inputs_, nullptr);
  for (const NodePtr& input : inputs_)
    depth_ = std::max(depth_, input->depth_ + 1);
}

void Node::accumulate(Tensor gradient) {
  gradient_ = gradient_.defined() ? add(gradient_, gradient) : std::move(gradient);
}

void backward(const NodePtr& root, Tensor gradient) {
  PUMICE_EXPECTS(root != nullptr,
                 "backward: nothing was recorded; run the forward pass with Context::record set");
  std::vector<NodePtr> order{root};
  std::unordered_set<const Node*> seen{root.get()};
  for (std::size_t next = 0; next < order.size(); ++next) {
    const std::vector<NodePtr> inputs = order[next]->inputs_;
    for (const NodePtr& input : inputs) {
      if (seen.insert(input.get()).second) order.push_back(input);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const NodePtr& a, const NodePtr& b) { return a->depth_ > b->depth_; });
  seen.clear();

  root->accumulate(std::move(gradient));
  for (NodePtr& node : order) {
    if (!node->leaf_ && node->gradient_.defined()) {
      PUMICE_EXPECTS(node->backward_ != nullptr,
                     "backward: this graph has run already; record a new forward pass");
      const Tensor passed_on = std::exchange(node->gradient_, {});
      const Backward run = std::exchange(node->backward_, nullptr);
      run(passed_on);
      node->inputs_.clear();
    }
    node.reset();   // saved features go as soon as their layer is done
  }
}

}   // namespace pumice::nn
