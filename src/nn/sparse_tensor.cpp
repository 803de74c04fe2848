// Making sparse tensors, and tensors from tensors.
#include <pumice/nn/sparse_tensor.hpp>

#include <utility>

#include <pumice/ops/rows.hpp>

namespace pumice::nn {

SparseTensor::SparseTensor(CoordinateSetPtr sites, Tensor values, std::shared_ptr<MapCache> cache)
    : coordinates(std::move(sites)), features(std::move(values)), maps(std::move(cache)) {
  PUMICE_EXPECTS(coordinates != nullptr && maps != nullptr,
                 "sparse tensor: coordinates and map cache must be given");
  PUMICE_EXPECTS(features.shape().rank() == 2, "sparse tensor: features have shape ",
                 to_string(features.shape()), "; they must be [rows, channels]");
  const std::int64_t room = coordinates->rows().capacity();
  PUMICE_EXPECTS(features.rows() == room, "sparse tensor: ", features.rows(),
                 " rows of features for ", room, " coordinates; give one row each");
}

SparseTensor SparseTensor::with(Tensor values, NodePtr gradient_node) const {
  return with(coordinates, std::move(values), std::move(gradient_node));
}

SparseTensor SparseTensor::with(CoordinateSetPtr sites, Tensor values,
                                NodePtr gradient_node) const {
  SparseTensor result(std::move(sites), std::move(values), maps);
  result.node = std::move(gradient_node);
  result.has_open_tail = !result.coordinates->rows().host_knows();
  return result;
}

void close_tail(SparseTensor& x) {
  if (x.has_open_tail) clear_tail(x.features.view(), x.coordinates->rows());
  x.has_open_tail = false;
}

NodePtr require_gradient(SparseTensor& input) {
  input.node = std::make_shared<Node>();
  return input.node;
}

}   // namespace pumice::nn
