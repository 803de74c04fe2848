// Sums over the records of a forward pass.
#include <pumice/nn/profile.hpp>

#include <numeric>
#include <utility>

namespace pumice::nn {
namespace {

double sum(const std::vector<LayerRecord>& layers, double LayerRecord::*field) {
  return std::accumulate(
      layers.begin(), layers.end(), 0.0,
      [field](double so_far, const LayerRecord& layer) { return so_far + layer.*field; });
}

}   // namespace

double Profile::total_ms() const {
  return sum(layers, &LayerRecord::ms);
}
double Profile::map_ms() const {
  return sum(layers, &LayerRecord::map_ms);
}
double Profile::gflop() const {
  return sum(layers, &LayerRecord::gflop);
}

void Profile::add(LayerRecord record, int counts) {
  layers.push_back(std::move(record));
  if (counts == 0) return;
  done += counts;
  if (progress) progress(done, expected);
}

}   // namespace pumice::nn
