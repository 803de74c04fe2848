// Tuples of the framework's tensors that a chain takes, looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pumice/nn/chain.hpp>

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

/// Of a tuple of Map of each link.
std::vector<KernelMapView> maps_in(nb::handle tuple, std::size_t links);
/// Of a tuple of (weight, scale, shift) of each link, one after the other, and one of WeightLayout
/// or None of each. Signs are not asked for: types_fit has seen them.
std::vector<nn::LinkParameters> parameters_in(const Call& call, nb::handle tuple,
                                              nb::handle layouts, std::size_t links);
/// Of a tuple of (mean, variance, batches) of each link.
std::vector<nn::RunningStatistics> running_in(const Call& call, nb::handle tuple,
                                              std::size_t links);

/// (of the features, of the other, of each parameter), None where not wanted. Parts of one piece of
/// memory are cut by the framework, in the shapes of `parameters`.
nb::tuple handed_out(const Call& call, const nn::ChainGradients& gradients, nb::handle parameters);

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

}   // namespace pumice::python
