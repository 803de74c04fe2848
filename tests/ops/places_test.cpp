// Where results go, operator by operator: the same bits wherever they go, and nothing else there.
// Covers the places of all operators.
#include <pumice/core/results.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pumice/ops/folded_norm.hpp>

#include "ops/every_operator.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// The place of the next result.
using Next = std::function<Place()>;
/// Calls an operator, asking for a place for each result; returns them in the same order.
using Run = std::function<std::vector<Tensor>(const OperatorInputs&, const Next&)>;

struct PlaceCase {
  std::string name;
  Run run;
};

class Remembers final : public pumice::Results {
 public:
  Tensor make(const Shape& shape, DType dtype, StreamView stream) override {
    made.emplace_back(shape, dtype, stream);
    return made.back();
  }
  std::vector<Tensor> made;
};

KernelMapPtr cells_of(const OperatorInputs& in) {
  return strided_map(in.set, {.size = axes(3, 2), .stride = axes(3, 2)}, StridedOutputs::cell);
}

std::vector<Tensor> parts(NormGradients gradients) {
  std::vector<Tensor> all{gradients.features, gradients.weight, gradients.bias};
  if (gradients.residual.defined()) all.push_back(gradients.residual);
  return all;
}

std::vector<Tensor> parts(Normalized norm) {
  return {norm.output, norm.mean, norm.inverse_deviation};
}

NormalizedPlaces three(const Next& next) {
  return {.output = next(), .mean = next(), .inverse_deviation = next()};
}

std::vector<PlaceCase> convolutions() {
  const auto with_map = [](auto work) {
    return [work](const OperatorInputs& in, const Next& next) {
      const KernelMapPtr map = cells_of(in);
      const Tensor grad =
          copy_to(in.stream, chance_tensor({map->view().out_rows, in.kChannels}, in.x.dtype(), 9));
      return work(in, map->view(), grad, next);
    };
  };
  using Map = KernelMapView;
  using In = OperatorInputs;
  const auto channels = In::kChannels;
  return {
      {"convolution", with_map([=](const In& in, const Map& map, const Tensor&, const Next& next) {
         return std::vector{convolution(in.x, in.weight(8, 1, channels), map, {}, next())};
       })},
      {"convolution in steps",
       with_map([=](const In& in, const Map& map, const Tensor& like, const Next& next) {
         const Tensor shortcut = in.weight(1, 1, channels);
         return std::vector{convolution(in.x, in.weight(8, 1, channels), map,
                                        {.shortcut = {.features = like, .weight = shortcut}},
                                        next())};
       })},
      {"input gradient",
       with_map([=](const In& in, const Map& map, const Tensor& grad, const Next& next) {
         return std::vector{
             convolution_input_gradient(grad, in.weight(8, 1, channels), map, {}, next())};
       })},
      {"weight gradient",
       with_map([=](const In& in, const Map& map, const Tensor& grad, const Next& next) {
         return std::vector{convolution_weight_gradient(
             in.x, grad, map, {.numerics = {.deterministic = true}}, next())};
       })},
      {"wide weight gradient",
       with_map([=](const In& in, const Map& map, const Tensor& grad, const Next& next) {
         return std::vector{convolution_weight_gradient(
             in.x, grad, map, {.numerics = {.deterministic = true}, .wide_weight_gradient = true},
             next())};
       })},
      {"max_pool", with_map([](const In& in, const Map& map, const Tensor& grad, const Next& next) {
         const MaxPooled most = max_pool(in.x, map, {.output = next(), .argmax = next()});
         return std::vector{most.output, most.argmax,
                            max_pool_gradient(grad, most.argmax, map, next())};
       })},
      {"average_pool and sum_pool",
       with_map([](const In& in, const Map& map, const Tensor& grad, const Next& next) {
         return std::vector{average_pool(in.x, map, next()), sum_pool(in.x, map, next()),
                            average_pool_gradient(grad, map, next()),
                            sum_pool_gradient(grad, map, next())};
       })},
      {"linear",
       [=](const In& in, const Next& next) {
         const Tensor matrix = in.weight(1, 1, channels).reshaped({channels, channels});
         return std::vector{
             linear(in.x, matrix, {}, {}, next()),
             linear_transposed(in.x, matrix, {}, {}, next()),
             linear_input_gradient(in.y, matrix, {}, next()),
             linear_transposed_input_gradient(in.y, matrix, {}, next()),
             linear_weight_gradient(in.x, in.y, {.numerics = {.deterministic = true}}, next()),
             linear_bias_gradient(in.y, nullptr, next()),
             bias_gradient(in.y, nullptr, next())};
       }},
  };
}

std::vector<PlaceCase> norms() {
  using In = OperatorInputs;
  return {
      {"batch norm",
       [](const In& in, const Next& next) {
         const Normalized norm =
             batch_norm_training(in.x, in.scale, in.shift, {}, {}, {}, {.relu = true}, three(next));
         std::vector<Tensor> all = parts(norm);
         for (const bool relu : {false, true}) {
           const ConstTensorView output = relu ? norm.output.view() : ConstTensorView{};
           for (const Tensor& one : parts(batch_norm_training_gradient(
                    in.x, in.y, in.scale, norm.mean, norm.inverse_deviation,
                    {.output = output, .residual = true},
                    {.features = next(), .weight = next(), .bias = next(), .residual = next()})))
             all.push_back(one);
         }
         return all;
       }},
      {"settled norm",
       [](const In& in, const Next& next) {
         std::vector<Tensor> all{batch_norm_inference(in.x, in.shift, in.scale, in.scale, in.shift,
                                                      1e-5, nullptr, next())};
         for (const Tensor& one : parts(batch_norm_inference_gradient(
                  in.x, in.y, in.shift, in.scale, in.scale, 1e-5, nullptr,
                  {.features = next(), .weight = next(), .bias = next()})))
           all.push_back(one);
         const ScaleShift folded = fold_batch_norm(in.shift, in.scale, in.scale, in.shift, {}, 1e-5,
                                                   {.scale = next(), .shift = next()});
         all.insert(all.end(), {folded.scale, folded.shift});
         const SettledNorm norm{.mean = in.shift, .variance = in.scale};
         all.push_back(fold_batch_norms({&norm, 1}, next()).memory);
         return all;
       }},
      {"layer norm",
       [](const In& in, const Next& next) {
         const Normalized norm = layer_norm(in.x, in.scale, in.shift, 1e-5, nullptr, three(next));
         std::vector<Tensor> all = parts(norm);
         for (const Tensor& one : parts(layer_norm_gradient(
                  in.x, in.y, in.scale, norm.mean, norm.inverse_deviation, nullptr,
                  {.features = next(), .weight = next(), .bias = next()})))
           all.push_back(one);
         return all;
       }},
      {"instance norm",
       [](const In& in, const Next& next) {
         const Normalized norm =
             instance_norm(in.x, *in.set, in.scale, in.shift, 1e-5, three(next));
         std::vector<Tensor> all = parts(norm);
         for (const Tensor& one : parts(instance_norm_gradient(
                  in.x, in.y, *in.set, in.scale, norm.mean, norm.inverse_deviation,
                  {.features = next(), .weight = next(), .bias = next()})))
           all.push_back(one);
         return all;
       }},
  };
}

std::vector<PlaceCase> elementwise() {
  using In = OperatorInputs;
  return {
      {"sums and products",
       [](const In& in, const Next& next) {
         return std::vector{add(in.x, in.y, next()),
                            subtract(in.x, in.y, next()),
                            multiply(in.x, in.y, next()),
                            scale(in.x, 0.37, next()),
                            convert(in.x, in.x.dtype(), next()),
                            convert(in.x, DType::bf16, next()),
                            concatenate(in.x, in.y, next()),
                            activate(in.x, Activation::gelu, 0.01, next()),
                            activation_gradient(in.x, in.y, Activation::gelu, 0.01, next())};
       }},
      {"parts",
       [](const In& in, const Next& next) {
         const std::array<std::int64_t, 2> widths{3, In::kChannels - 3};
         const std::array<Place, 2> places{next(), next()};
         return split(in.x, widths, places);
       }},
      {"on the union of two sets",
       [](const In& in, const Next& next) {
         const UnionSet sites = unite(*in.set, *in.set);
         const Tensor sum = add(in.x, in.y, sites, next());
         const Tensor beside = concatenate(in.x, in.y, sites, next());
         const UnionGradients of_sum =
             union_add_gradient(sum, sites, {.left = next(), .right = next()});
         const UnionGradients of_beside = union_concatenate_gradient(
             beside, In::kChannels, sites, {.left = next(), .right = next()});
         return std::vector{sum,          beside,         of_sum.left,
                            of_sum.right, of_beside.left, of_beside.right};
       }},
      {"items",
       [](const In& in, const Next& next) {
         const GlobalMaxPooled most =
             global_max_pool(in.x, *in.set, {.output = next(), .argmax = next()});
         return std::vector{most.output,
                            most.argmax,
                            global_max_pool_gradient(in.items, most.argmax, *in.set, next()),
                            global_average_pool(in.x, *in.set, next()),
                            global_sum_pool(in.x, *in.set, next()),
                            global_average_pool_gradient(in.items, *in.set, next()),
                            global_sum_pool_gradient(in.items, *in.set, next()),
                            broadcast(in.items, *in.set, next()),
                            broadcast_add(in.x, in.items, *in.set, next()),
                            broadcast_multiply(in.x, in.items, *in.set, next()),
                            broadcast_concatenate(in.x, in.items, *in.set, next())};
       }},
      {"gradients of broadcasts",
       [](const In& in, const Next& next) {
         const BroadcastGradients sum =
             broadcast_add_gradient(in.x, *in.set, {.features = next(), .items = next()});
         const BroadcastGradients product = broadcast_multiply_gradient(
             in.x, in.items, in.y, *in.set, {.features = next(), .items = next()});
         const BroadcastGradients beside = broadcast_concatenate_gradient(
             in.x, 7, *in.set, {.features = next(), .items = next()});
         return std::vector{sum.features,  sum.items,       product.features,
                            product.items, beside.features, beside.items};
       }},
  };
}

std::vector<PlaceCase> rows() {
  using In = OperatorInputs;
  return {
      {"rows",
       [](const In& in, const Next& next) {
         Tensor chosen({in.x.rows()}, DType::i32);
         for (std::int64_t i = 0; i < in.x.rows(); ++i)
           chosen.data<std::int32_t>()[i] = static_cast<std::int32_t>(i / 2);
         const Tensor row_of = copy_to(in.stream, chosen);
         std::vector<Tensor> all{take_rows(in.x, row_of, next()),
                                 scatter_rows(in.x, row_of, in.x.rows(), next())};
         for (const Reduction kind :
              {Reduction::sum, Reduction::mean, Reduction::max, Reduction::first}) {
           const bool has_source = kind == Reduction::max || kind == Reduction::first;
           const ReducedRows made =
               reduce_rows(in.x, row_of, in.x.rows(), kind,
                           {.output = next(), .source = has_source ? next() : Place()});
           all.push_back(made.output);
           if (has_source) all.push_back(made.source);
           all.push_back(reduce_rows_gradient(
               in.y, row_of, has_source ? made.source.view() : ConstTensorView{}, kind, next()));
         }
         return all;
       }},
      {"dense grids",
       [](const In& in, const Next& next) {
         const Tensor dense = to_dense(in.x, *in.set, {}, next());
         const Tensor bev = to_bev(in.x, *in.set, 2, {}, next());
         return std::vector{dense,
                            bev,
                            to_dense_gradient(dense, *in.set, {}, next()),
                            to_bev_gradient(bev, *in.set, 2, {}, next()),
                            from_dense(dense, {}, next()).features,
                            from_dense_gradient(in.x, *in.set, grid_of(*in.set), next())};
       }},
      {"interpolation",
       [](const In& in, const Next& next) {
         Tensor points = chance_tensor({in.x.rows(), 4}, DType::f32, 11, -10, 10);
         for (std::int64_t p = 0; p < points.rows(); ++p)
           points.data<float>()[4 * p] = static_cast<float>(p % 5);
         const InterpolationMap map = interpolation_map(*in.set, copy_to(in.stream, points), {},
                                                        {.rows = next(), .weights = next()});
         return std::vector{map.rows, map.weights, interpolate(in.x, map, next()),
                            interpolate_gradient(in.y, map, next())};
       }},
  };
}

void check_places(const PlaceCase& one, const OperatorInputs& in) {
  SCOPED_TRACE(one.name + " of " + std::string(name_of(in.x.dtype())));
  const std::vector<Tensor> expected = one.run(in, [] { return Place(); });

  Remembers results;
  const std::vector<Tensor> made = one.run(in, [&] { return Place(results); });
  EXPECT_EQ(results.made.size(), expected.size());
  ASSERT_EQ(made.size(), expected.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    EXPECT_TRUE(std::any_of(results.made.begin(), results.made.end(),
                            [&](const Tensor& tensor) {
                              return tensor.raw() == made[i].raw() &&
                                     tensor.shape() == made[i].shape();
                            }))
        << "result " << i;
    EXPECT_TRUE(same_bits(back(made[i]), back(expected[i]))) << "result " << i;
  }

  std::vector<Tensor> memory;
  for (const Tensor& result : expected) {
    memory.emplace_back(result.shape(), result.dtype(), result.stream());
    fill_bytes_async(memory.back().raw(), std::byte{0xff}, result.bytes(), in.stream);
  }
  std::size_t next = 0;
  const std::vector<Tensor> placed = one.run(in, [&] { return Place(memory.at(next++)); });
  EXPECT_EQ(next, memory.size());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    EXPECT_EQ(placed[i].raw(), memory[i].raw()) << "result " << i;
    EXPECT_TRUE(same_bits(back(memory[i]), back(expected[i]))) << "result " << i;
  }
}

void check_all(StreamView stream, std::initializer_list<DType> types) {
  for (const DType type : types) {
    const OperatorInputs in(60, type, stream);
    for (const auto& cases : {convolutions(), norms(), elementwise(), rows()}) {
      for (const PlaceCase& one : cases)
        check_places(one, in);
    }
  }
}

TEST(Places, HoldTheSameResults) {
  check_all({}, {DType::f32, DType::f16});
}

TEST(PlacesGpu, HoldTheSameResults) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  check_all(stream, {DType::f32, DType::f16});
}

}   // namespace
}   // namespace pumice::test
