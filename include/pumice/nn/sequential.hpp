// Layers one after another, and the residual block made of them.
#pragma once

#include <optional>
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
  /// `right_channels`: those of in_channels that will come in a tensor of their own, if any do, so
  /// that `pumice kernels` knows.
  ResidualBlock(std::int64_t in_channels, std::int64_t out_channels, int dimension = 3,
                const NormOptions& norm = {}, std::int64_t right_channels = 0);
  SparseTensor forward(SparseTensor x, Context& context) override;
  /// Of `concatenate(left, right)`, which is not made where kernels read both.
  SparseTensor forward(SparseTensor left, const SparseTensor& right, Context& context);

  const Convolution& first() const { return *first_; }
  std::int64_t right_channels() const { return right_channels_; }
  /// Folded, whether there is a convolution in the shortcut that runs with the second one, of an
  /// input of which `right_channels` lie apart: as the plan has it, where the dataflow is not
  /// given.
  bool fuses(std::int64_t right_channels, DType type, Device device,
             std::optional<Dataflow> dataflow = std::nullopt) const;

 private:
  SparseTensor forward_folded(SparseTensor x, const Tensor& right, Context& context);

  std::int64_t right_channels_;
  std::shared_ptr<Convolution> first_;
  std::shared_ptr<BatchNorm> first_norm_;
  std::shared_ptr<Convolution> second_;
  std::shared_ptr<BatchNorm> second_norm_;
  std::shared_ptr<Sequential> net_;   // the four above, and the relu between them
  ModulePtr relu_;
  std::shared_ptr<Convolution> shortcut_;   // null where widths agree, as the next two
  std::shared_ptr<BatchNorm> shortcut_norm_;
  std::shared_ptr<Sequential> downsample_;   // these two
};

/// conv-bn-relu.
std::shared_ptr<Sequential> convolution_block(const ConvolutionSpec& spec,
                                              const NormOptions& norm = {});

}   // namespace pumice::nn
