// Launches of the elementwise kernels.
#include "ops/cuda/elementwise.hpp"

#include <algorithm>

#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

jit::LaunchShape shape_for(std::int64_t elements) {
  return {.blocks = (elements + kElementsPerBlock - 1) / kElementsPerBlock,
          .threads = kElementThreads};
}

/// Rows of one array laid into, or taken out of, another.
class ColumnCopies {
 public:
  ColumnCopies(const ConstTensorView& wide) : wide_(wide) {}

  void add(const ConstTensorView& narrow, const void* from, void* to, std::int64_t from_pitch,
           std::int64_t to_pitch) {
    const auto element = static_cast<std::int64_t>(size_of(wide_.dtype()));
    const std::int64_t width = narrow.extent(1) * element;
    if (width == 0) return;
    if (arguments_.parts == kMaxColumnParts) run();
    arguments_.part[arguments_.parts++] = {.from = from,
                                           .to = to,
                                           .from_pitch = from_pitch * element,
                                           .to_pitch = to_pitch * element,
                                           .width = width};
  }

  void run() {
    if (arguments_.parts == 0) return;
    std::int64_t together = 16;
    for (int p = 0; p < arguments_.parts; ++p) {
      const ColumnPart& part = arguments_.part[p];
      together |= part.from_pitch | part.to_pitch | part.width |
                  reinterpret_cast<std::intptr_t>(part.from) |
                  reinterpret_cast<std::intptr_t>(part.to);
    }
    arguments_.copy_bytes = widest_access(together);
    arguments_.rows = wide_.rows();
    std::int64_t blocks = 0;
    for (int p = 0; p < arguments_.parts; ++p) {
      ColumnPart& part = arguments_.part[p];
      part.first_block = blocks;
      const std::int64_t pieces = part.width / arguments_.copy_bytes * arguments_.rows;
      blocks += (pieces + kElementThreads - 1) / kElementThreads;
    }
    runner_for(wide_).run(ops_kernel("copy_columns"),
                          {.blocks = blocks, .threads = kElementThreads}, arguments_);
    arguments_ = {};
  }

 private:
  ConstTensorView wide_;
  ColumnArguments arguments_{};
};

}   // namespace

void combine(ConstTensorView left, ConstTensorView right, Combination combination, TensorView out) {
  runner_for(left).run(ops_kernel("combine_elements"), shape_for(out.elements()),
                       CombineArguments{.left = left.raw(),
                                        .right = right.raw(),
                                        .out = out.raw(),
                                        .elements = out.elements(),
                                        .type = element_type(left.dtype(), "combine", "left"),
                                        .combination = combination});
}

void convert(ConstTensorView in, double factor, TensorView out) {
  runner_for(in).run(ops_kernel("convert_elements"), shape_for(out.elements()),
                     ConvertArguments{.in = in.raw(),
                                      .out = out.raw(),
                                      .elements = out.elements(),
                                      .factor = static_cast<float>(factor),
                                      .in_type = element_type(in.dtype(), "convert", "features"),
                                      .out_type = element_type(out.dtype(), "convert", "output")});
}

void activate(ConstTensorView in, Activation activation, double slope, TensorView out) {
  activation_gradient(in, {}, activation, slope, out);
}

void activation_gradient(ConstTensorView in, ConstTensorView gradient, Activation activation,
                         double slope, TensorView out) {
  runner_for(in).run(ops_kernel("activate_elements"), shape_for(out.elements()),
                     ActivateArguments{.in = in.raw(),
                                       .gradient = gradient.raw(),
                                       .out = out.raw(),
                                       .elements = out.elements(),
                                       .slope = static_cast<float>(slope),
                                       .type = element_type(in.dtype(), "activate", "features"),
                                       .activation = activation});
}

void affine(ConstTensorView in, ConstTensorView scale, ConstTensorView shift, TensorView out) {
  runner_for(in).run(ops_kernel("affine_elements"), shape_for(out.elements()),
                     AffineArguments{.in = in.raw(),
                                     .out = out.raw(),
                                     .scale = scale.data<float>(),
                                     .shift = shift.data<float>(),
                                     .elements = out.elements(),
                                     .channels = in.extent(1),
                                     .type = element_type(in.dtype(), "norm", "features")});
}

void join_columns(std::span<const Columns> parts, TensorView wide) {
  const auto element = static_cast<std::int64_t>(size_of(wide.dtype()));
  ColumnCopies copies(wide);
  for (const Columns& part : parts) {
    copies.add(part.narrow_const, part.narrow_const.raw(),
               static_cast<std::byte*>(wide.raw()) + part.offset * element,
               part.narrow_const.extent(1), wide.extent(1));
  }
  copies.run();
}

void cut_columns(std::span<const Columns> parts, ConstTensorView wide) {
  const auto element = static_cast<std::int64_t>(size_of(wide.dtype()));
  ColumnCopies copies(wide);
  for (const Columns& part : parts) {
    copies.add(part.narrow, static_cast<const std::byte*>(wide.raw()) + part.offset * element,
               part.narrow.raw(), wide.extent(1), part.narrow.extent(1));
  }
  copies.run();
}

}   // namespace pumice::cuda
