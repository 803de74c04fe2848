// What the links of a chain learn: looked at, packed for kernels, and their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pumice/kernels/tile_weights.hpp>

#include "framework.hpp"

namespace pumice::python {

/// The items of a tuple, borrowed.
class Items {
 public:
  /// InternalError where it is no tuple, or none of `count`.
  Items(nb::handle tuple, const char* name);
  Items(nb::handle tuple, std::size_t count, const char* name);
  std::size_t size() const { return static_cast<std::size_t>(PyTuple_Size(tuple_.ptr())); }
  nb::handle operator[](std::size_t index) const {
    return PyTuple_GetItem(tuple_.ptr(), static_cast<Py_ssize_t>(index));
  }

 private:
  nb::handle tuple_;
};

class WeightLayouts;

inline constexpr std::size_t kParameters = 3;   // a link

/// What a layer learns, looked at.
struct Parameters {
  ConstTensorView weight;   // [K, C_in, C_out], once WeightLayouts has seen it
  ConstTensorView scale;    // [C_out], of the norm
  ConstTensorView shift;
};

/// Of a tuple of (weight, scale, shift) of each link, one after the other.
std::vector<Parameters> parameters_in(const Call& call, nb::handle tuple, std::size_t links);

struct Running {
  TensorView mean;   // [C_out]
  TensorView variance;
  TensorView batches;   // how many there were
};

/// Of a tuple of (mean, variance, batches) of each link.
std::vector<Running> running_in(const Call& call, nb::handle tuple, std::size_t links);

/// Whether kernels take these types: features and `other` (None, or of the same type) floating, and
/// in double precision on the host alone; weights of the type of the features, or, where `rounds`
/// says that autocast asked for that type, on a device wider ones; what norms learn, and what they
/// keep, of the type of sums or of the features. All of `parameters` and `running` (as in
/// parameters_in and running_in) contiguous, and none a negated view.
bool types_fit(nb::handle features, nb::handle other, nb::handle parameters, nb::handle running,
               bool rounds);

/// The tensors that something was made of, to tell whether it would be the same today: which they
/// are, where they lie, and how often they were written into. Whoever asks keeps them alive, or
/// another one may come to lie where one of them was.
class MadeOf {
 public:
  /// Of tuples as in parameters_in and running_in; without the numbers of batches.
  MadeOf(nb::handle parameters, nb::handle running);

  friend bool operator==(const MadeOf&, const MadeOf&) = default;

 private:
  struct Part {
    const PyObject* tensor;
    const void* data;
    std::int64_t version;
    friend bool operator==(const Part&, const Part&) = default;
  };

  void add(nb::handle tensor);

  std::vector<Part> parts_;
};

/// The weights of all links in the forms that kernels read, packed at once where an earlier pass
/// tells in which.
class PackedLinks {
 public:
  PackedLinks(TileWeightUses& uses, const std::vector<Parameters>& parameters, StreamView stream);

  TileWeights* of(std::size_t link) { return &packed_[link]; }
  /// Remembers what the pass asked for.
  void learn() { uses_.learn(all()); }

 private:
  std::vector<TileWeights*> all();

  TileWeightUses& uses_;
  std::vector<TileWeights> packed_;
};

/// Gradients of the parameters of a chain, in one piece of memory for each type: made, cleared and
/// handed out at once. Those of weights in half precision are added up in float32 and rounded at
/// the end, those of weights in other layouts brought into these, all of them at once. What does not
/// fit there has a gradient that is a tensor of its own.
class ParameterGradients {
 public:
  ParameterGradients(Call& call, nb::handle like, nb::handle parameters_given,
                     const std::vector<Parameters>& parameters, const WeightLayouts& layouts);

  /// Where the gradient of a link's parameter goes: of its weight (0) zeros to add sums to, of the
  /// norm's scale (1) and shift (2) memory of their type. Undefined: it has no room here.
  TensorView of(std::size_t link, std::size_t parameter) const {
    return places_[kParameters * link + parameter].view;
  }
  /// In the order of the parameters; null where one has no room here. Once, when all are there.
  std::vector<nb::object> tensors();

 private:
  struct Place {
    std::int64_t offset = 0;        // elements from the start of its piece
    std::int64_t turned_offset = 0;   // and of turned_sums_
    TensorView view;
  };
  struct Piece {
    DType dtype = DType::f32;   // of the gradients that are handed out
    std::int64_t elements = 0;
    bool holds_sums = false;            // of weights, which have to start at zero
    std::vector<std::size_t> members;   // which parameters, in the order of their places
    nb::list likes;                     // these
    TensorView memory;
    nb::object tensor;
  };

  bool moves(std::size_t parameter) const;
  TensorView in(const TensorView& memory, std::int64_t offset, std::size_t parameter) const;

  Call& call_;
  nb::handle like_;
  const WeightLayouts& layouts_;
  std::vector<ConstTensorView> parameters_;
  std::vector<Place> places_;   // in the order of the parameters
  Piece wide_;                  // of the type of sums
  Piece rounded_;               // weights in half precision
  Piece narrow_;                // what norms learn in half precision
  Tensor sums_;                 // before they are rounded
  Tensor turned_sums_;          // of weights that move, before they do
};

}   // namespace pumice::python
