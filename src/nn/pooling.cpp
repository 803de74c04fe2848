// Pooling layers over kernel maps and over batch items.
#include <pumice/nn/pooling.hpp>

#include <utility>

#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/pooling.hpp>

#include "maps/windows.hpp"
#include "nn/layer_timer.hpp"

namespace pumice::nn {
namespace {

std::string name_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::max: return "max pool";
    case Pooling::average: return "average pool";
    case Pooling::sum: return "sum pool";
  }
  return "?";
}

/// One site at the origin for each batch item, where `set` is.
CoordinateSetPtr origins(const CoordinateSet& set) {
  const std::int64_t items = set.batch_size();
  Tensor coordinates = Tensor::zeros({items, 1 + set.dimension()}, DType::i32);
  for (std::int64_t item = 0; item < items; ++item) {
    coordinates.data<std::int32_t>()[item * (1 + set.dimension())] =
        static_cast<std::int32_t>(item);
  }
  CoordinateOptions options;
  options.batch_size = set.batch_size();
  return CoordinateSet::copy_to(CoordinateSet::create(coordinates, options), set.stream());
}

}   // namespace

Pool::Pool(Pooling pooling, KernelWindow window, StridedOutputs outputs)
    : pooling_(pooling), window_(normalized(std::move(window))), outputs_(outputs) {
  validate(window_);
}

SparseTensor Pool::forward(SparseTensor x, Context& context) {
  LayerTimer timer(context, path(), x, 1);
  const double map_ms_before = x.maps->build_ms();
  const KernelMapPtr map = is_strided(window_) ? x.maps->strided(x.coordinates, window_, outputs_)
                                               : x.maps->submanifold(x.coordinates, window_);
  timer.map_is_ready(x.maps->build_ms() - map_ms_before);

  Tensor y;
  Tensor argmax;
  switch (pooling_) {
    case Pooling::max: {
      MaxPooled pooled = max_pool(x.features, map->view());
      y = std::move(pooled.output);
      argmax = std::move(pooled.argmax);
      break;
    }
    case Pooling::average: y = average_pool(x.features, map->view()); break;
    case Pooling::sum: y = sum_pool(x.features, map->view()); break;
  }
  NodePtr node;
  if (context.record && x.node != nullptr) {
    node = std::make_shared<Node>(std::vector{x.node}, [pooling = pooling_, map, argmax,
                                                        from = x.node](const Tensor& gradient) {
      switch (pooling) {
        case Pooling::max:
          return from->accumulate(max_pool_gradient(gradient, argmax, map->view()));
        case Pooling::average:
          return from->accumulate(average_pool_gradient(gradient, map->view()));
        case Pooling::sum: return from->accumulate(sum_pool_gradient(gradient, map->view()));
      }
    });
  }
  timer.record().pairs = map->pairs();
  SparseTensor result = x.with(map->out(), std::move(y), std::move(node));
  timer.finish(name_of(pooling_) + " " + describe(window_), result);
  return result;
}

SparseTensor GlobalPool::forward(SparseTensor x, Context& context) {
  LayerTimer timer(context, path(), x, 1);
  Tensor y;
  Tensor argmax;
  switch (pooling_) {
    case Pooling::max: {
      GlobalMaxPooled pooled = global_max_pool(x.features, *x.coordinates);
      y = std::move(pooled.output);
      argmax = std::move(pooled.argmax);
      break;
    }
    case Pooling::average: y = global_average_pool(x.features, *x.coordinates); break;
    case Pooling::sum: y = global_sum_pool(x.features, *x.coordinates); break;
  }
  NodePtr node;
  if (context.record && x.node != nullptr) {
    node = std::make_shared<Node>(
        std::vector{x.node},
        [pooling = pooling_, argmax, sites = x.coordinates, from = x.node](const Tensor& gradient) {
          switch (pooling) {
            case Pooling::max:
              return from->accumulate(global_max_pool_gradient(gradient, argmax, *sites));
            case Pooling::average:
              return from->accumulate(global_average_pool_gradient(gradient, *sites));
            case Pooling::sum: return from->accumulate(global_sum_pool_gradient(gradient, *sites));
          }
        });
  }
  SparseTensor result = x.with(origins(*x.coordinates), std::move(y), std::move(node));
  timer.finish("global " + name_of(pooling_), result);
  return result;
}

}   // namespace pumice::nn
