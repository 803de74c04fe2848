// A tree of named parameters: what all layers and networks are, whatever flows through them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pumice/nn/parameter.hpp>

namespace pumice::nn {

class Module;

class ParameterTree {
 public:
  ParameterTree() = default;
  ParameterTree(const ParameterTree&) = delete;
  ParameterTree& operator=(const ParameterTree&) = delete;
  virtual ~ParameterTree() = default;

  /// Place in the network, "stage1.1.net.0"; empty for the root.
  const std::string& path() const { return path_; }
  /// All parameters and buffers below here, in the order they were added, by path.
  std::vector<NamedParameter> parameters() const;
  /// This layer and all below it, each before what it holds.
  std::vector<const ParameterTree*> modules() const;
  /// Layers below here that do the work, convolutions, linear and pooling layers and those of
  /// graphs: the steps of a progress bar.
  int layer_count() const;

  bool training() const { return training_; }
  /// Training mode also ends folding.
  void train();
  void eval();
  /// Converts weights to f32, f64, f16 or bf16; norms and biases stay in the compute type.
  void to(DType type);
  /// Moves parameters to the device of `stream`, or back; work on them is enqueued there, and
  /// moving back waits for it. What is f64 stays on the CPU: UserError.
  void to(StreamView stream);
  void clear_gradients();

  bool folded() const { return folded_; }

 protected:
  ParameterPtr add_parameter(std::string name, const ParameterSpec& spec);
  template <class M> std::shared_ptr<M> add_child(std::string name, std::shared_ptr<M> child) {
    adopt(std::move(name), child);
    return child;
  }
  /// path() for messages: "stem.0", or "the layer" at the root.
  std::string label() const;
  virtual bool counts_as_layer() const { return false; }

 private:
  friend void fold(Module& network);
  template <class Visit> void visit(Visit&& visitor);
  void adopt(std::string name, std::shared_ptr<ParameterTree> child);
  void set_path(std::string path);
  void collect(const std::string& prefix, std::vector<NamedParameter>& into) const;
  void collect(std::vector<const ParameterTree*>& into) const;

  std::string path_;
  std::vector<std::pair<std::string, ParameterPtr>> parameters_;
  std::vector<std::pair<std::string, std::shared_ptr<ParameterTree>>> children_;
  bool training_ = true;
  bool folded_ = false;
};

}   // namespace pumice::nn
