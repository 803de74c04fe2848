// Sums, products and concatenations of features, on equal rows and on different coordinate sets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/coords/set_operations.hpp>
#include <pumice/core/results.hpp>

namespace pumice {

/// Element by element; both of the same shape and dtype. The gradient of `add` is grad_output for
/// either side; of `multiply` it is grad_output times the other side.
Tensor add(ConstTensorView left, ConstTensorView right, const Place& place = {});
Tensor subtract(ConstTensorView left, ConstTensorView right, const Place& place = {});
Tensor multiply(ConstTensorView left, ConstTensorView right, const Place& place = {});
/// features · factor, rounded once.
Tensor scale(ConstTensorView features, double factor, const Place& place = {});
/// The same numbers in another floating type, rounded once, where they are; shares them when they
/// are of that type already and no other place is asked for.
Tensor convert(const Tensor& features, DType dtype, const Place& place = {});
/// total += term: how gradients that reach one tensor on several ways add up.
void add_in_place(TensorView total, ConstTensorView term);

/// Channels of all parts side by side, [N, C0 + C1 + …]; equal rows and dtype, at least one part.
Tensor concatenate(std::span<const ConstTensorView> parts, const Place& place = {});
Tensor concatenate(ConstTensorView left, ConstTensorView right, const Place& place = {});
/// The inverse: columns cut into parts of the given numbers of channels, which must add up.
/// `places`: one for each part, or none.
std::vector<Tensor> split(ConstTensorView features, std::span<const std::int64_t> channels,
                          std::span<const Place> places = {});

/// On the union of two coordinate sets; a row that one side does not have counts as 0 there.
/// left: [rows of the left set, C], right: [rows of the right set, C].
Tensor add(ConstTensorView left, ConstTensorView right, const UnionSet& sites,
           const Place& place = {});
/// [rows of the union, C_left + C_right].
Tensor concatenate(ConstTensorView left, ConstTensorView right, const UnionSet& sites,
                   const Place& place = {});

struct UnionGradients {
  Tensor left;
  Tensor right;
};
struct UnionGradientPlaces {
  Place left{};
  Place right{};
};
UnionGradients union_add_gradient(ConstTensorView grad_output, const UnionSet& sites,
                                  const UnionGradientPlaces& places = {});
/// `left_channels`: how many columns of grad_output belong to the left side.
UnionGradients union_concatenate_gradient(ConstTensorView grad_output, std::int64_t left_channels,
                                          const UnionSet& sites,
                                          const UnionGradientPlaces& places = {});

}   // namespace pumice
