// A network on a CUDA device: layer by layer, and as one CUDA graph.
#include <iostream>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

namespace {

pumice::Tensor layer_by_layer(const pumice::nn::ModulePtr& network, const pumice::Voxels& voxels,
                              const pumice::Stream& stream) {
  const pumice::CoordinateSetPtr sites = pumice::CoordinateSet::create(voxels.coordinates);
  const pumice::Tensor& features = voxels.features;
  pumice::nn::Context context;
  network->eval();
  pumice::nn::fold(*network);
  network->to(stream);
  const pumice::nn::SparseTensor x(pumice::CoordinateSet::copy_to(sites, stream),
                                   pumice::copy_to(stream, features));
  const pumice::nn::SparseTensor y = network->forward(x, context);
  const pumice::Tensor scores = pumice::copy_to_host(y.features, stream);   // waits
  return scores;
}

std::int64_t as_one_graph(const pumice::nn::ModulePtr& network, const pumice::Voxels& voxels,
                          const pumice::Stream& stream) {
  const pumice::Tensor& coordinates = voxels.coordinates;
  const pumice::Tensor& features = voxels.features;
  pumice::nn::CapturedNetwork fast(network, stream);
  const pumice::nn::SparseTensor y = fast.forward(coordinates, features, {.batch_size = 1});
  const auto rows = y.coordinates->rows().wait_for_host(stream);   // raises what went wrong
  return rows;
}

}   // namespace

int main() {
  try {
    const pumice::PointCloud sweep =
        pumice::simulate({.seed = 1, .sensor = pumice::SensorModel::beams32()});
    const pumice::Voxels voxels =
        pumice::voxelize(sweep, pumice::point_features(sweep), {.size = {0.2f, 0.2f, 0.2f}});
    const auto network = pumice::nn::make_network("minkunet42", {.seed = 7});
    const pumice::Stream stream({pumice::DeviceKind::cuda, 0});
    const pumice::Tensor scores = layer_by_layer(network, voxels, stream);
    const std::int64_t rows = as_one_graph(network, voxels, stream);
    if (scores.rows() != rows) return 1;
    std::cout << rows << " voxels, layer by layer and as one graph\n";
    return 0;
  } catch (const pumice::UserError& error) {   // as where there is no CUDA device
    std::cerr << error.what() << '\n';
    return 1;
  }
}
