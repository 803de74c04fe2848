// Where the gradients of a chain's parameters go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/chain/learned.hpp"

namespace pumice::nn {

/// One piece of memory for each type: made, cleared and handed out at once. Gradients of weights in
/// half precision are added up in f32 and rounded at the end, those of weights in other layouts
/// brought into these, all of them at once. What does not fit there has a gradient of its own.
class ParameterGradients {
 public:
  /// `place`: of the pieces.
  ParameterGradients(const Learned& learned, StreamView stream, const Place& place);
  ParameterGradients(const ParameterGradients&) = delete;
  ParameterGradients& operator=(const ParameterGradients&) = delete;

  /// Where the gradient of a link's parameter goes: of its weight (0) zeros to add sums to, of the
  /// norm's scale (1) and shift (2) memory of their type. Undefined: it has no room here.
  const Tensor& of(std::size_t link, std::size_t parameter) const {
    return rooms_[kLinkParameters * link + parameter].sums;
  }
  /// Rounds and turns what has to be, once all are there, and hands out the gradients that lie
  /// here.
  void finish(ChainGradients& result);

 private:
  /// Gradients of one type that are handed out together.
  struct Piece {
    DType dtype = DType::f32;
    std::int64_t elements = 0;
    bool holds_sums = false;            // of weights, which have to start at zero
    std::vector<std::size_t> members;   // which parameters, in the order of their places
    Tensor memory;
  };
  struct Room {
    Piece* piece = nullptr;
    std::int64_t offset = 0;   // elements from the start of the piece
    Tensor sums;
  };

  void assign();
  void make();
  void round();
  void turn_back(const Piece& piece, const Tensor& from_halves);
  bool moves(std::size_t parameter) const;
  ConstTensorView given(std::size_t parameter) const;
  /// As kernels write it.
  Shape sums_shape(std::size_t parameter) const;
  Tensor zeros(std::int64_t elements, DType dtype) const;

  const Learned& learned_;
  StreamView stream_;
  const Place& place_;
  std::vector<Room> rooms_;   // in the order of the parameters
  Piece wide_;                // of the type of sums
  Piece rounded_;             // weights in half precision
  Piece narrow_;              // what norms learn in half precision
  Tensor sums_;               // before they are rounded
};

}   // namespace pumice::nn
