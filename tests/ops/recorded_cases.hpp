// Every function with a device form, once, to be recorded into a graph: what each gives, or that it
// is refused. recorded_operators_device_test.cpp runs them; a function that no case names fails a
// test there.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pumice/coords/set_operations.hpp>
#include <pumice/coords/unique.hpp>
#include <pumice/coords/voxel_sites.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/cross_entropy.hpp>
#include <pumice/ops/dense.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/folded_norm.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/interpolation.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/permutation.hpp>
#include <pumice/ops/pooling.hpp>
#include <pumice/ops/rows.hpp>

#include "ops/device_support.hpp"
#include "ops/recorded_graph.hpp"

namespace pumice::test {

using Outputs = std::vector<Tensor>;

/// A map that nothing was computed with yet, and operands for it.
struct RecordedMap {
  const char* name;
  KernelMapPtr map;
  KernelMapView view;
  Tensor features, grad, weight, grad_wide;   // C = 20 → 20, and → 36

  RecordedMap(const char* called, KernelMapPtr made, bool inverse, DType type, StreamView stream)
      : name(called), map(std::move(made)), view(map->view()) {
    if (inverse) view = transposed(view);
    features = copy_to(stream, chance_tensor({view.in_rows, 20}, type, 8));
    grad = copy_to(stream, chance_tensor({view.out_rows, 20}, type, 9));
    grad_wide = copy_to(stream, chance_tensor({view.out_rows, 36}, type, 10));
    weight = copy_to(stream, chance_tensor({view.offsets, 20, 36}, type, 6));
  }
};

/// What the cases work on, made before the recording begins.
struct RecordedInputs {
  static constexpr std::int64_t kChannels = 20;
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const KernelWindow halves{.size = axes(3, 2), .stride = axes(3, 2)};
  const KernelWindow steps{.size = axes(3, 3), .stride = axes(3, 2), .padding = axes(3, 1)};

  RecordedInputs(std::int64_t rows, DType type, StreamView to)
      : stream(to),
        graph(rows, type, to),
        on_host(chance_set(rows, 7)),
        set(CoordinateSet::copy_to(on_host, to)),
        other(CoordinateSet::copy_to(chance_set(rows, 8), to)) {
    const auto chance = [&](Shape shape, std::uint64_t seed, double low = -1, double high = 1) {
      return copy_to(stream,
                     chance_tensor(shape, shape.rank() == 1 ? DType::f32 : type, seed, low, high));
    };
    x = chance({rows, kChannels}, 1);
    y = chance({rows, kChannels}, 2);
    items = chance({set->batch_size(), kChannels}, 3);
    scale = chance({kChannels}, 4, 0.5, 1.5);
    shift = chance({kChannels}, 5);
    matrix = chance({kChannels, kChannels}, 12);
    Tensor chosen({rows}, DType::i32);
    Tensor kept({rows}, DType::u8);
    for (std::int64_t i = 0; i < rows; ++i) {
      chosen.data<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7 + 3) % (rows + 1) - 1);
      kept.data<std::uint8_t>()[i] = i % 3 != 0;
    }
    row_of = copy_to(stream, chosen);
    Tensor classes({rows}, DType::i64);
    for (std::int64_t i = 0; i < rows; ++i)
      classes.data<std::int64_t>()[i] = i % (kChannels + 1) - 1;
    label = copy_to(stream, classes);
    keep = copy_to(stream, kept);
    Tensor some = chance_tensor({rows, 4}, DType::f32, 11, -10, 10);
    for (std::int64_t p = 0; p < rows; ++p)
      some.data<float>()[4 * p] = static_cast<float>(p % set->batch_size());
    points = copy_to(stream, some);
    united = unite(*set, *other);
    union_grad = chance({united.set->size(), kChannels}, 13);
    union_grad_wide = chance({united.set->size(), 2 * kChannels}, 14);
    grid = grid_of(*set);
    dense = to_dense(x, *set);
    coordinates = copy_to(stream, on_host->coordinates());
    const KernelMapPtr cells = strided_map(set, halves, StridedOutputs::cell);
    coarse = cells->out();
    Tensor backwards({coarse->size()}, DType::i32);
    for (std::int64_t rank = 0; rank < coarse->size(); ++rank)
      backwards.data<std::int32_t>()[rank] = static_cast<std::int32_t>(coarse->size() - 1 - rank);
    coarse_row = copy_to(stream, backwards);
    const auto add = [&](const char* name, KernelMapPtr map, bool inverse = false) {
      maps.emplace_back(name, std::move(map), inverse, type, stream);
    };
    add("submanifold", submanifold_map(set, cube));
    add("cells", cells);
    add("inverse", strided_map(set, halves, StridedOutputs::cell), true);
    add("dilating", strided_map(set, steps, StridedOutputs::dilating));
    add("transposed", transposed_map(coarse, set, halves));
    add("generative", generative_map(coarse, halves));
    add("between", map_between(set, other, cube));
    add("pointwise", submanifold_map(set, submanifold_window(3, axes(3, 1), axes(3, 1))));
  }

  StreamView stream;
  RecordedGraph graph;
  CoordinateSetPtr on_host, set, other, coarse;
  Tensor x, y, items, scale, shift, matrix, row_of, coarse_row, keep, label, points, dense,
      coordinates;
  UnionSet united;
  Tensor union_grad, union_grad_wide;
  DenseGrid grid;
  std::vector<RecordedMap> maps;
};

struct RecordedCase {
  std::string name;
  std::vector<std::string_view> functions;   // of the headers
  std::function<void(RecordedInputs&, Outputs&)> run;
  bool refused = false;   // it waits for the device
};

namespace recorded {

inline const ConvolutionOptions kSameBits{.numerics = {.deterministic = true}};

inline void add_map_cases(std::vector<RecordedCase>& cases) {
  constexpr const char* kNames[] = {"submanifold", "cells",      "inverse", "dilating",
                                    "transposed",  "generative", "between", "pointwise"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    const std::string of = std::string(" of ") + kNames[i];
    const auto add = [&](const char* what, std::vector<std::string_view> functions, auto body) {
      cases.push_back({what + of, std::move(functions),
                       [i, body](RecordedInputs& in, Outputs& out) { body(in.maps.at(i), out); }});
    };
    add("convolution", {"convolution"}, [](const RecordedMap& m, Outputs& out) {
      out.push_back(convolution(m.features, m.weight, m.view, kSameBits));
    });
    add("input gradient", {"convolution_input_gradient"}, [](const RecordedMap& m, Outputs& out) {
      out.push_back(convolution_input_gradient(m.grad_wide, m.weight, m.view, kSameBits));
    });
    add("weight gradient", {"convolution_weight_gradient"}, [](const RecordedMap& m, Outputs& out) {
      out.push_back(convolution_weight_gradient(m.features, m.grad_wide, m.view, kSameBits));
    });
    add("max pool", {"max_pool", "max_pool_gradient"}, [](const RecordedMap& m, Outputs& out) {
      const MaxPooled most = max_pool(m.features, m.view);
      out.insert(out.end(),
                 {most.output, most.argmax, max_pool_gradient(m.grad, most.argmax, m.view)});
    });
    add("average pool", {"average_pool", "average_pool_gradient"},
        [](const RecordedMap& m, Outputs& out) {
          out.push_back(average_pool(m.features, m.view));
          out.push_back(average_pool_gradient(m.grad, m.view));
        });
    add("sum pool", {"sum_pool", "sum_pool_gradient"}, [](const RecordedMap& m, Outputs& out) {
      out.push_back(sum_pool(m.features, m.view));
      out.push_back(sum_pool_gradient(m.grad, m.view));
    });
  }
  cases.push_back({"fetch on demand", {"convolution"}, [](RecordedInputs& in, Outputs& out) {
                     const RecordedMap& m = in.maps.front();
                     ConvolutionOptions options = kSameBits;
                     options.dataflow = Dataflow::fetch_on_demand;
                     out.push_back(convolution(m.features, m.weight, m.view, options));
                   }});
  cases.push_back({"gather, multiply, scatter",
                   {"convolution"},
                   [](RecordedInputs& in, Outputs& out) {
                     const RecordedMap& m = in.maps.front();
                     out.push_back(convolution(m.features, m.weight, m.view,
                                               {.dataflow = Dataflow::gather_gemm_scatter}));
                   },
                   true});
  cases.push_back({"weights packed for later calls",
                   {"convolution"},
                   [kept = std::make_shared<PackedWeights>()](RecordedInputs& in, Outputs& out) {
                     const RecordedMap& m = in.maps.front();
                     ConvolutionOptions options = kSameBits;
                     options.kept = kept.get();
                     out.push_back(convolution(m.features, m.weight, m.view, options));
                   }});
  cases.push_back({"weight gradient into",
                   {"convolution_weight_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const RecordedMap& m = in.maps.front();
                     ConvolutionOptions options = kSameBits;
                     options.wide_weight_gradient = true;
                     out.push_back(convolution_weight_gradient(
                         m.features, m.grad_wide, m.view, options,
                         Place::zeroed(Tensor::zeros(m.weight.shape(), DType::f32, in.stream))));
                   }});
}

/// What `run(options)` gives with every plan of a problem that can be recorded.
template <class Run>
void with_every_plan(const ConvolutionProblem& problem, Outputs& out, Run&& run) {
  for (const Candidate& one : candidates(problem, target_of(kGpu))) {
    if (one.plan.dataflow == Dataflow::gather_gemm_scatter) continue;   // which waits
    ConvolutionOptions options = kSameBits;
    options.plan = &one.plan;
    options.plan = plan_of(problem, KernelMapView{.device = kGpu}, options).get();
    out.push_back(run(options));
  }
}

/// Tiles of every size, unsorted ones, splits, products of pairs.
inline void add_plans(std::vector<RecordedCase>& cases) {
  cases.push_back(
      {"every plan", {"convolution_problem", "plan_of"}, [](RecordedInputs& in, Outputs& out) {
         const RecordedMap& m = in.maps.front();
         with_every_plan(convolution_problem(m.features, m.weight, m.view, kSameBits), out,
                         [&](const ConvolutionOptions& options) {
                           return convolution(m.features, m.weight, m.view, options);
                         });
       }});
  cases.push_back(
      {"every plan of an input gradient",
       {"convolution_input_gradient_problem"},
       [](RecordedInputs& in, Outputs& out) {
         const RecordedMap& m = in.maps.front();
         with_every_plan(
             convolution_input_gradient_problem(m.grad_wide, m.weight, m.view, kSameBits), out,
             [&](const ConvolutionOptions& options) {
               return convolution_input_gradient(m.grad_wide, m.weight, m.view, options);
             });
       }});
  cases.push_back(
      {"every plan of a weight gradient",
       {"convolution_weight_gradient_problem"},
       [](RecordedInputs& in, Outputs& out) {
         const RecordedMap& m = in.maps.front();
         with_every_plan(
             convolution_weight_gradient_problem(m.features, m.grad_wide, m.view, kSameBits), out,
             [&](const ConvolutionOptions& options) {
               return convolution_weight_gradient(m.features, m.grad_wide, m.view, options);
             });
       }});
}

/// Sets and maps made while the graph is recorded.
inline void add_making_cases(std::vector<RecordedCase>& cases) {
  const auto multiply_by = [](const KernelMapPtr& map, const RecordedInputs& in, Outputs& out,
                              std::size_t like) {
    const RecordedMap& m = in.maps.at(like);
    out.push_back(convolution(m.features, m.weight, map->view(), kSameBits));
  };
  cases.push_back({"a submanifold map", {"submanifold_map"}, [=](RecordedInputs& in, Outputs& out) {
                     multiply_by(submanifold_map(in.set, in.cube), in, out, 0);
                   }});
  cases.push_back({"a transposed map", {"transposed_map"}, [=](RecordedInputs& in, Outputs& out) {
                     multiply_by(transposed_map(in.coarse, in.set, in.halves), in, out, 4);
                   }});
  cases.push_back({"a map between sets", {"map_between"}, [=](RecordedInputs& in, Outputs& out) {
                     multiply_by(map_between(in.set, in.other, in.cube), in, out, 6);
                   }});
  cases.push_back(
      {"a set from the host", {"submanifold_map"}, [=](RecordedInputs& in, Outputs& out) {
         const auto here = CoordinateSet::copy_to(in.on_host, in.stream);
         multiply_by(submanifold_map(here, in.cube), in, out, 0);
         out.push_back(here->coordinates());
       }});
  cases.push_back({"coordinates of a made set", {}, [](RecordedInputs& in, Outputs& out) {
                     out.push_back(in.coarse->coordinates());
                   }});
  cases.push_back({"another order of rows", {"reorder"}, [](RecordedInputs& in, Outputs& out) {
                     out.push_back(reorder(*in.coarse, in.coarse_row)->coordinates());
                   }});
  cases.push_back({"ranges of items", {"batch_ranges"}, [](RecordedInputs& in, Outputs& out) {
                     out.push_back(batch_ranges(*in.set));
                   }});
  const auto refuse = [&](const char* name, std::vector<std::string_view> functions, auto body) {
    cases.push_back({name, std::move(functions),
                     [body](RecordedInputs& in, Outputs&) { (void)body(in); }, true});
  };
  refuse("a strided map over cells", {"strided_map"},
         [](RecordedInputs& in) { return strided_map(in.set, in.halves, StridedOutputs::cell); });
  refuse("a strided map that dilates", {"strided_map"}, [](RecordedInputs& in) {
    return strided_map(in.set, in.steps, StridedOutputs::dilating);
  });
  refuse("a strided set", {"strided_set"}, [](RecordedInputs& in) {
    return strided_set(in.set, in.steps, StridedOutputs::dilating);
  });
  refuse("a generative map", {"generative_map"},
         [](RecordedInputs& in) { return generative_map(in.coarse, in.halves); });
  refuse("a coarser set", {"coarsen"},
         [](RecordedInputs& in) { return coarsen(*in.set, axes(3, 2)); });
  refuse("a union", {"unite"}, [](RecordedInputs& in) { return unite(*in.set, *in.other); });
  refuse("a pruned set", {"prune_set"},
         [](RecordedInputs& in) { return prune_set(*in.set, in.keep); });
  refuse("sites of points", {"voxel_sites"}, [](RecordedInputs& in) {
    return voxel_sites(in.points, {}, {.size = {1, 1, 1}});
  });
  refuse("distinct coordinates", {"unique_coordinates"},
         [](RecordedInputs& in) { return unique_coordinates(in.coordinates); });
  refuse("a set of coordinates on the device", {},
         [](RecordedInputs& in) { return CoordinateSet::create(in.coordinates); });
  refuse("a set to the host", {},
         [](RecordedInputs& in) { return CoordinateSet::copy_to(in.set, StreamView{}); });
  refuse("rows of a dense array", {"from_dense"},
         [](RecordedInputs& in) { return from_dense(in.dense).features; });
}

inline void add_norm_cases(std::vector<RecordedCase>& cases) {
  const auto add_norm = [](Outputs& out, const Normalized& norm) {
    out.insert(out.end(), {norm.output, norm.mean, norm.inverse_deviation});
  };
  const auto add_gradients = [](Outputs& out, const NormGradients& gradients) {
    out.insert(out.end(), {gradients.features, gradients.weight, gradients.bias});
  };
  cases.push_back(
      {"batch norm",
       {"batch_norm_training", "batch_norm_training_gradient"},
       [=](RecordedInputs& in, Outputs& out) {
         Tensor mean = Tensor::zeros({in.kChannels}, DType::f32, in.stream);
         Tensor variance = Tensor::full({in.kChannels}, DType::f32, 1, in.stream);
         const Normalized norm =
             batch_norm_training(in.x, in.scale, in.shift, mean.view(), variance.view());
         add_norm(out, norm);
         out.insert(out.end(), {mean, variance});
         add_gradients(out, batch_norm_training_gradient(in.x, in.y, in.scale, norm.mean,
                                                         norm.inverse_deviation));
       }});
  cases.push_back(
      {"settled batch norm",
       {"batch_norm_inference", "batch_norm_inference_gradient", "fold_batch_norm",
        "fold_batch_norms"},
       [=](RecordedInputs& in, Outputs& out) {
         out.push_back(batch_norm_inference(in.x, in.shift, in.scale, in.scale, in.shift));
         add_gradients(out,
                       batch_norm_inference_gradient(in.x, in.y, in.shift, in.scale, in.scale));
         const ScaleShift folded = fold_batch_norm(in.shift, in.scale, in.scale, in.shift, {});
         out.insert(out.end(), {folded.scale, folded.shift});
         const SettledNorm norm{in.shift, in.scale, in.scale, in.shift};
         out.push_back(fold_batch_norms(std::array{norm, norm}).memory);
       }});
  cases.push_back({"axes in another order", {"permute"}, [=](RecordedInputs& in, Outputs& out) {
                     Tensor turned({in.kChannels, in.x.rows()}, in.x.dtype(), in.stream);
                     permute(std::array{Permutation{in.x, {1, 0}, turned.view()}});
                     out.push_back(turned);
                   }});
  cases.push_back(
      {"layer norm", {"layer_norm", "layer_norm_gradient"}, [=](RecordedInputs& in, Outputs& out) {
         const Normalized norm = layer_norm(in.x, in.scale, in.shift);
         add_norm(out, norm);
         add_gradients(
             out, layer_norm_gradient(in.x, in.y, in.scale, norm.mean, norm.inverse_deviation));
       }});
  cases.push_back({"instance norm",
                   {"instance_norm", "instance_norm_gradient"},
                   [=](RecordedInputs& in, Outputs& out) {
                     const Normalized norm = instance_norm(in.x, *in.set, in.scale, in.shift);
                     add_norm(out, norm);
                     add_gradients(out, instance_norm_gradient(in.x, in.y, *in.set, in.scale,
                                                               norm.mean, norm.inverse_deviation));
                   }});
}

inline void add_elementwise_cases(std::vector<RecordedCase>& cases) {
  cases.push_back({"sums and products",
                   {"add", "subtract", "multiply", "scale", "convert", "add_in_place"},
                   [](RecordedInputs& in, Outputs& out) {
                     out.insert(out.end(),
                                {add(in.x, in.y), subtract(in.x, in.y), multiply(in.x, in.y),
                                 scale(in.x, 0.37), convert(in.x, DType::f32)});
                     Tensor total = in.x.clone();
                     add_in_place(total.view(), in.y);
                     out.push_back(std::move(total));
                   }});
  cases.push_back({"columns", {"concatenate", "split"}, [](RecordedInputs& in, Outputs& out) {
                     out.push_back(concatenate(in.x, in.y));
                     for (Tensor& part : split(in.x, std::array<std::int64_t, 2>{4, 16}))
                       out.push_back(std::move(part));
                   }});
  cases.push_back({"on a union",
                   {"add", "concatenate", "union_add_gradient", "union_concatenate_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     out.push_back(add(in.x, in.y, in.united));
                     out.push_back(concatenate(in.x, in.y, in.united));
                     const UnionGradients sum = union_add_gradient(in.union_grad, in.united);
                     const UnionGradients wide =
                         union_concatenate_gradient(in.union_grad_wide, in.kChannels, in.united);
                     out.insert(out.end(), {sum.left, sum.right, wide.left, wide.right});
                   }});
  cases.push_back({"activations",
                   {"activate", "activate_in_place", "activation_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     out.push_back(activate(in.x, Activation::gelu));
                     out.push_back(activation_gradient(in.x, in.y, Activation::silu));
                     Tensor over = in.x.clone();
                     activate_in_place(over.view(), Activation::relu);
                     out.push_back(std::move(over));
                   }});
  cases.push_back(
      {"linear layers",
       {"linear", "linear_transposed", "linear_input_gradient", "linear_transposed_input_gradient",
        "linear_weight_gradient", "linear_bias_gradient", "bias_gradient"},
       [](RecordedInputs& in, Outputs& out) {
         out.insert(
             out.end(),
             {linear(in.x, in.matrix, in.shift), linear_transposed(in.x, in.matrix, in.shift),
              linear_input_gradient(in.y, in.matrix),
              linear_transposed_input_gradient(in.y, in.matrix),
              linear_weight_gradient(in.x, in.y, {.numerics = {.deterministic = true}}),
              linear_bias_gradient(in.y), bias_gradient(in.y)});
       }});
}

inline void add_item_cases(std::vector<RecordedCase>& cases) {
  cases.push_back(
      {"global pooling",
       {"global_max_pool", "global_max_pool_gradient", "global_average_pool",
        "global_average_pool_gradient", "global_sum_pool", "global_sum_pool_gradient"},
       [](RecordedInputs& in, Outputs& out) {
         const GlobalMaxPooled most = global_max_pool(in.x, *in.set);
         out.insert(
             out.end(),
             {most.output, most.argmax, global_max_pool_gradient(in.items, most.argmax, *in.set),
              global_average_pool(in.x, *in.set), global_average_pool_gradient(in.items, *in.set),
              global_sum_pool(in.x, *in.set), global_sum_pool_gradient(in.items, *in.set)});
       }});
  cases.push_back(
      {"broadcasts",
       {"broadcast", "broadcast_add", "broadcast_multiply", "broadcast_concatenate",
        "broadcast_add_gradient", "broadcast_multiply_gradient", "broadcast_concatenate_gradient"},
       [](RecordedInputs& in, Outputs& out) {
         const Tensor beside = broadcast_concatenate(in.x, in.items, *in.set);
         out.insert(out.end(),
                    {broadcast(in.items, *in.set), broadcast_add(in.x, in.items, *in.set),
                     broadcast_multiply(in.x, in.items, *in.set), beside});
         for (const BroadcastGradients& gradients :
              {broadcast_add_gradient(in.y, *in.set),
               broadcast_multiply_gradient(in.x, in.items, in.y, *in.set),
               broadcast_concatenate_gradient(beside, in.kChannels, *in.set)})
           out.insert(out.end(), {gradients.features, gradients.items});
       }});
}

inline void add_loss_cases(std::vector<RecordedCase>& cases) {
  cases.push_back({"cross entropy",
                   {"cross_entropy", "cross_entropy_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const CrossEntropyOptions options{.weight = in.scale, .smoothing = 0.1};
                     const CrossEntropy made = cross_entropy(in.x, in.label, options);
                     const Tensor gradient =
                         cross_entropy_gradient(in.x, in.label, made, made.loss, options);
                     out.insert(out.end(), {made.loss, made.weight, gradient});
                   }});
}

inline void add_row_cases(std::vector<RecordedCase>& cases) {
  cases.push_back({"rows",
                   {"take_rows", "scatter_rows", "clear_tail", "cleared_tail"},
                   [](RecordedInputs& in, Outputs& out) {
                     Tensor taken = take_rows(in.x, in.row_of);
                     clear_tail(taken.view(), in.set->rows());
                     out.push_back(std::move(taken));
                     out.push_back(cleared_tail(in.x, in.set->rows()));
                     out.push_back(scatter_rows(in.x, in.row_of, in.x.rows()));
                   }});
  cases.push_back({"reduced rows",
                   {"reduce_rows", "reduce_rows_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     for (const Reduction reduction :
                          {Reduction::first, Reduction::sum, Reduction::mean, Reduction::max}) {
                       const ReducedRows rows =
                           reduce_rows(in.x, in.row_of, in.x.rows(), reduction);
                       out.push_back(rows.output);
                       out.push_back(reduce_rows_gradient(in.y, in.row_of, rows.source, reduction));
                     }
                   }});
  cases.push_back(
      {"dense arrays",
       {"to_dense", "to_dense_gradient", "to_bev", "to_bev_gradient", "from_dense_gradient"},
       [](RecordedInputs& in, Outputs& out) {
         const Tensor bev = to_bev(in.x, *in.set, 2);
         out.insert(out.end(), {to_dense(in.x, *in.set), to_dense_gradient(in.dense, *in.set), bev,
                                to_bev_gradient(bev, *in.set, 2),
                                from_dense_gradient(in.x, *in.set, in.grid)});
       }});
  cases.push_back({"interpolation",
                   {"interpolation_map", "interpolate", "interpolate_gradient"},
                   [](RecordedInputs& in, Outputs& out) {
                     const InterpolationMap map = interpolation_map(*in.set, in.points);
                     out.insert(out.end(), {map.rows, map.weights, interpolate(in.x, map),
                                            interpolate_gradient(in.y, map)});
                   }});
}

}   // namespace recorded

}   // namespace pumice::test
