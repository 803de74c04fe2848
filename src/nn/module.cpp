// Walking the tree of a network.
#include <pumice/nn/module.hpp>

namespace pumice::nn {

template <class Visit> void Module::visit(Visit&& visitor) {
  visitor(*this);
  for (const auto& [name, child] : children_)
    child->visit(visitor);
}

ParameterPtr Module::add_parameter(std::string name, const ParameterSpec& spec) {
  auto parameter = std::make_shared<Parameter>(spec);
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

void Module::adopt(std::string name, ModulePtr child) {
  PUMICE_EXPECTS(child != nullptr, "module \"", name, "\" of ", label(), " is null");
  child->set_path(path_.empty() ? name : path_ + "." + name);
  children_.emplace_back(std::move(name), std::move(child));
}

void Module::set_path(std::string path) {
  path_ = std::move(path);
  for (const auto& [name, child] : children_)
    child->set_path(path_ + "." + name);
}

std::string Module::label() const {
  return path_.empty() ? "the layer" : path_;
}

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> result;
  collect("", result);
  return result;
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& into) const {
  for (const auto& [name, parameter] : parameters_)
    into.push_back({prefix + name, parameter});
  for (const auto& [name, child] : children_)
    child->collect(prefix + name + ".", into);
}

std::vector<const Module*> Module::modules() const {
  std::vector<const Module*> result;
  collect(result);
  return result;
}

void Module::collect(std::vector<const Module*>& into) const {
  into.push_back(this);
  for (const auto& [name, child] : children_)
    child->collect(into);
}

int Module::layer_count() const {
  int count = counts_as_layer() ? 1 : 0;
  for (const auto& [name, child] : children_)
    count += child->layer_count();
  return count;
}

void Module::train() {
  visit([](Module& module) {
    module.training_ = true;
    module.folded_ = false;
  });
}

void Module::eval() {
  visit([](Module& module) { module.training_ = false; });
}

void Module::to(DType type) {
  for (const NamedParameter& named : parameters())
    named.parameter->to(type);
}

void Module::to(StreamView stream) {
  for (const NamedParameter& named : parameters())
    named.parameter->to(stream);
}

void Module::clear_gradients() {
  for (const NamedParameter& named : parameters())
    named.parameter->clear_gradient();
}

void fold(Module& network) {
  PUMICE_EXPECTS(!network.training(), "fold: ", network.label(),
                 " is in training mode, where norms need the batch; call eval() first");
  network.visit([](Module& module) { module.folded_ = true; });
}

}   // namespace pumice::nn
