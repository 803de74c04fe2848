// Walking the tree of a network.
#include <pumice/nn/parameter_tree.hpp>

#include <pumice/core/error.hpp>
#include <pumice/nn/module.hpp>

namespace pumice::nn {

template <class Visit> void ParameterTree::visit(Visit&& visitor) {
  visitor(*this);
  for (const auto& [name, child] : children_)
    child->visit(visitor);
}

ParameterPtr ParameterTree::add_parameter(std::string name, const ParameterSpec& spec) {
  auto parameter = std::make_shared<Parameter>(spec);
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

void ParameterTree::adopt(std::string name, std::shared_ptr<ParameterTree> child) {
  PUMICE_EXPECTS(child != nullptr, "module \"", name, "\" of ", label(), " is null");
  child->set_path(path_.empty() ? name : path_ + "." + name);
  children_.emplace_back(std::move(name), std::move(child));
}

void ParameterTree::set_path(std::string path) {
  path_ = std::move(path);
  for (const auto& [name, child] : children_)
    child->set_path(path_ + "." + name);
}

std::string ParameterTree::label() const {
  return path_.empty() ? "the layer" : path_;
}

std::vector<NamedParameter> ParameterTree::parameters() const {
  std::vector<NamedParameter> result;
  collect("", result);
  return result;
}

void ParameterTree::collect(const std::string& prefix, std::vector<NamedParameter>& into) const {
  for (const auto& [name, parameter] : parameters_)
    into.push_back({prefix + name, parameter});
  for (const auto& [name, child] : children_)
    child->collect(prefix + name + ".", into);
}

std::vector<const ParameterTree*> ParameterTree::modules() const {
  std::vector<const ParameterTree*> result;
  collect(result);
  return result;
}

void ParameterTree::collect(std::vector<const ParameterTree*>& into) const {
  into.push_back(this);
  for (const auto& [name, child] : children_)
    child->collect(into);
}

int ParameterTree::layer_count() const {
  int count = counts_as_layer() ? 1 : 0;
  for (const auto& [name, child] : children_)
    count += child->layer_count();
  return count;
}

void ParameterTree::train() {
  visit([](ParameterTree& module) {
    module.training_ = true;
    module.folded_ = false;
  });
}

void ParameterTree::eval() {
  visit([](ParameterTree& module) { module.training_ = false; });
}

void ParameterTree::to(DType type) {
  for (const NamedParameter& named : parameters())
    named.parameter->to(type);
}

void ParameterTree::to(StreamView stream) {
  for (const NamedParameter& named : parameters())
    named.parameter->to(stream);
}

void ParameterTree::clear_gradients() {
  for (const NamedParameter& named : parameters())
    named.parameter->clear_gradient();
}

void fold(Module& network) {
  PUMICE_EXPECTS(!network.training(), "fold: ", network.label(),
                 " is in training mode, where norms need the batch; call eval() first");
  network.visit([](ParameterTree& module) { module.folded_ = true; });
}

}   // namespace pumice::nn
