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

inline constexpr std::size_t kParameters = 3;   // a link

/// What a layer learns, looked at.
struct Parameters {
  ConstTensorView weight;   // [K, C_in, C_out]
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
/// says that autocast asked for that type, on a device wider ones; norms of the type of sums. All
/// of `parameters` (as in parameters_in) contiguous.
bool types_fit(nb::handle features, nb::handle other, nb::handle parameters, bool rounds);

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

/// Gradients of the parameters that sums are kept in the type of, in one piece of memory: made,
/// cleared and handed out at once. The others' gradients are tensors of their own.
class ParameterGradients {
 public:
  ParameterGradients(const Call& call, nb::handle like, nb::handle parameters_given,
                     const std::vector<Parameters>& parameters);

  /// Zeros for the gradient of a link's parameter (0: weight, 1: scale, 2: shift); undefined: it
  /// has no room here.
  TensorView of(std::size_t link, std::size_t parameter) const {
    return places_[kParameters * link + parameter].view;
  }
  /// In the order of the parameters; null where one has no room here.
  std::vector<nb::object> tensors() const;

 private:
  struct Place {
    std::int64_t offset = -1;   // elements from the start; below 0: no room
    TensorView view;
  };

  std::vector<Place> places_;   // in the order of the parameters
  std::int64_t elements_ = 0;
  nb::list likes_;
  nb::object pieces_;
};

}   // namespace pumice::python
