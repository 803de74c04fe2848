// The base of layers and networks of sparse tensors: parameters with a forward pass.
#pragma once

#include <memory>

#include <pumice/nn/context.hpp>
#include <pumice/nn/parameter_tree.hpp>
#include <pumice/nn/sparse_tensor.hpp>

namespace pumice::nn {

class Module;
using ModulePtr = std::shared_ptr<Module>;

class Module : public ParameterTree {
 public:
  virtual SparseTensor forward(SparseTensor x, Context& context) = 0;
};

/// Prepares for inference: from now on a convolution, the batch norm behind it, a residual and an
/// activation run as one call whose epilogue holds the norm as scale and shift. Parameters keep
/// their values and names. UserError in training mode, where a norm needs the batch.
void fold(Module& network);

}   // namespace pumice::nn
