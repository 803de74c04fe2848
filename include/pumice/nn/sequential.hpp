// Layers one after another, and the residual block made of them.
#pragma once

#include <vector>

#include <pumice/nn/convolution.hpp>

namespace pumice::nn {

/// Of the batch norms that a block makes.
struct NormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
};

/// Children are named "0", "1", …
class Sequential final : public Module {
 public:
  Sequential() = default;
  explicit Sequential(std::vector<ModulePtr> layers);

  Sequential& append(ModulePtr layer);
  SparseTensor forward(SparseTensor x, Context& context) override;

  std::size_t size() const { return layers_.size(); }
  const ModulePtr& operator[](std::size_t i) const { return layers_[i]; }

 private:
  std::vector<ModulePtr> layers_;
};

/// relu(net(x) + shortcut(x)): net is conv-bn-relu-conv-bn, 3^D submanifold; the shortcut is x, or
/// a 1^D conv-bn named `downsample` where the widths differ.
class ResidualBlock final : public Module {
 public:
  ResidualBlock(std::int64_t in_channels, std::int64_t out_channels, int dimension = 3,
                const NormOptions& norm = {});
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  std::shared_ptr<Convolution> first_;
  std::shared_ptr<BatchNorm> first_norm_;
  std::shared_ptr<Convolution> second_;
  std::shared_ptr<BatchNorm> second_norm_;
  std::shared_ptr<Sequential> net_;   // the four above, and the relu between them
  ModulePtr relu_;
  std::shared_ptr<Sequential> downsample_;   // null where widths agree
};

/// conv-bn-relu.
std::shared_ptr<Sequential> convolution_block(const ConvolutionSpec& spec,
                                              const NormOptions& norm = {});

}   // namespace pumice::nn
