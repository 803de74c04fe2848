// One piece of memory for the gradients of each type, and what becomes of the sums in them.
#include "nn/chain/parameter_gradients.hpp"

#include <algorithm>
#include <utility>

#include <pumice/ops/elementwise.hpp>

namespace pumice::nn {

ParameterGradients::ParameterGradients(const Learned& learned, StreamView stream,
                                       const Place& place)
    : learned_(learned), stream_(stream), place_(place), rooms_(kLinkParameters * learned.size()) {
  assign();
  make();
}

bool ParameterGradients::moves(std::size_t parameter) const {
  return parameter % kLinkParameters == 0 && learned_.moves(parameter / kLinkParameters);
}

ConstTensorView ParameterGradients::given(std::size_t parameter) const {
  return learned_.given(parameter / kLinkParameters, parameter % kLinkParameters);
}

Shape ParameterGradients::sums_shape(std::size_t parameter) const {
  const bool is_weight = parameter % kLinkParameters == 0;
  return is_weight ? learned_.weight(parameter / kLinkParameters).shape()
                   : given(parameter).shape();
}

Tensor ParameterGradients::zeros(std::int64_t elements, DType dtype) const {
  return elements == 0 ? Tensor() : Tensor::zeros(Shape({elements}), dtype, stream_);
}

void ParameterGradients::assign() {
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    const ConstTensorView parameter = given(i);
    const bool is_wide = parameter.dtype() == DType::f32 || parameter.dtype() == DType::f64;
    const bool is_weight = i % kLinkParameters == 0;
    Piece& piece = is_wide ? wide_ : is_weight ? rounded_ : narrow_;
    const auto bytes = static_cast<std::size_t>(parameter.elements()) * size_of(parameter.dtype());
    if (piece.elements == 0) piece.dtype = parameter.dtype();
    // Kernels, and optimisers, read and write sixteen bytes at once.
    if (bytes == 0 || bytes % 16 != 0 || parameter.dtype() != piece.dtype) continue;
    rooms_[i] = {&piece, piece.elements, {}};
    piece.elements += parameter.elements();
    piece.holds_sums |= is_weight && !moves(i);
    piece.members.push_back(i);
  }
}

void ParameterGradients::make() {
  if (wide_.elements > 0)
    wide_.memory = wide_.holds_sums ? place_.make_zeros({wide_.elements}, wide_.dtype, stream_)
                                    : place_.make({wide_.elements}, wide_.dtype, stream_);
  if (narrow_.elements > 0)
    narrow_.memory = place_.make({narrow_.elements}, narrow_.dtype, stream_);
  sums_ = zeros(rounded_.elements, DType::f32);
  std::int64_t turned = 0;
  for (const std::size_t i : wide_.members)
    turned += moves(i) ? given(i).elements() : 0;
  const Tensor turned_sums = zeros(turned, wide_.dtype);
  turned = 0;
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    Room& room = rooms_[i];
    if (room.piece == nullptr) continue;
    const bool is_turned = room.piece == &wide_ && moves(i);
    const Tensor& memory = is_turned                 ? turned_sums
                           : room.piece == &rounded_ ? sums_
                                                     : room.piece->memory;
    room.sums = memory.part(is_turned ? turned : room.offset, sums_shape(i));
    if (is_turned) turned += given(i).elements();
  }
}

void ParameterGradients::round() {
  if (rounded_.elements == 0) return;
  const bool some_move = std::any_of(rounded_.members.begin(), rounded_.members.end(),
                                     [&](std::size_t i) { return moves(i); });
  if (!some_move) {
    rounded_.memory = convert(sums_, rounded_.dtype, place_);
    return;
  }
  rounded_.memory = place_.make(sums_.shape(), rounded_.dtype, stream_);
  turn_back(rounded_, convert(sums_, rounded_.dtype));
}

void ParameterGradients::turn_back(const Piece& piece, const Tensor& from_halves) {
  std::vector<Permutation> copies;
  for (const std::size_t i : piece.members) {
    if (!from_halves.defined() && !moves(i)) continue;
    const Room& room = rooms_[i];
    const Tensor from =
        from_halves.defined() ? from_halves.part(room.offset, sums_shape(i)) : room.sums;
    Tensor to = piece.memory.part(room.offset, given(i).shape());
    copies.push_back(learned_.back(i / kLinkParameters, from.view(), to.view()));
  }
  if (!copies.empty()) permute(copies);
}

void ParameterGradients::finish(ChainGradients& result) {
  round();
  turn_back(wide_, {});
  for (Piece* piece : {&wide_, &rounded_, &narrow_}) {
    if (piece->elements == 0) continue;
    for (const std::size_t i : piece->members)
      result.parameters[i] = piece->memory.part(rooms_[i].offset, given(i).shape());
    result.pieces.push_back({std::move(piece->memory), std::move(piece->members)});
  }
}

}   // namespace pumice::nn
