// Looks at what Python gathered of the layers of a chain.
#include "chain_tensors.hpp"

#include <pumice/core/error.hpp>

#include "names.hpp"
#include "sites.hpp"
#include "tensor_look.hpp"

namespace pumice::python {

namespace {

constexpr std::size_t kRunning = 3;   // a link

}   // namespace

Items::Items(nb::handle tuple, const char* name) : tuple_(tuple) {
  PUMICE_ENSURES(PyTuple_Check(tuple.ptr()), name, " are no tuple");
}

Items::Items(nb::handle tuple, std::size_t count, const char* name) : Items(tuple, name) {
  PUMICE_ENSURES(size() == count, name, " are ", size(), ", not ", count);
}

std::vector<KernelMapView> maps_in(nb::handle tuple, std::size_t links) {
  const Items items(tuple, links, "maps");
  std::vector<KernelMapView> maps;
  maps.reserve(links);
  for (std::size_t i = 0; i < links; ++i)
    maps.push_back(nb::cast<const Map&>(items[i]).view());
  return maps;
}

std::vector<nn::LinkParameters> parameters_in(const Call& call, nb::handle tuple,
                                              nb::handle layouts, std::size_t links) {
  const Items items(tuple, nn::kLinkParameters * links, "parameters");
  const Items given_layouts(layouts, links, "layouts of weights");
  std::vector<nn::LinkParameters> all;
  all.reserve(links);
  for (std::size_t i = 0; i < links; ++i) {
    const auto view = [&](std::size_t index, const char* name) {
      return view_of(items[nn::kLinkParameters * i + index], name, call.stream());
    };
    const nb::handle layout = given_layouts[i];
    all.push_back(
        {.weight = view(0, "weight"),
         .scale = view(1, "weight of the norm"),
         .shift = view(2, "bias of the norm"),
         .layout = layout.is_none() ? nullptr : nb::cast<const nn::WeightLayout*>(layout)});
  }
  return all;
}

std::vector<nn::RunningStatistics> running_in(const Call& call, nb::handle tuple,
                                              std::size_t links) {
  const Items items(tuple, kRunning * links, "running statistics");
  std::vector<nn::RunningStatistics> all;
  all.reserve(links);
  for (std::size_t i = 0; i < links; ++i) {
    all.push_back({mutable_view_of(items[kRunning * i], "running_mean", call.stream()),
                   mutable_view_of(items[kRunning * i + 1], "running_var", call.stream()),
                   single_view_of(items[kRunning * i + 2], "num_batches_tracked", call.stream())});
  }
  return all;
}

nb::tuple handed_out(const Call& call, const nn::ChainGradients& gradients, nb::handle parameters) {
  const std::size_t count = gradients.parameters.size();
  const nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(nn::kChainGiven + count)));
  const auto put = [&](std::size_t index, nb::object tensor) {
    PyTuple_SetItem(all.ptr(), static_cast<Py_ssize_t>(index), tensor.release().ptr());
  };
  put(0, gradients.features.defined() ? call.give(gradients.features) : nb::none());
  put(1, gradients.other.defined() ? call.give(gradients.other) : nb::none());
  const Items given(parameters, count, "parameters");
  std::vector<bool> is_cut(count);
  for (const nn::ChainGradients::Piece& piece : gradients.pieces) {
    nb::list likes;
    for (const std::size_t i : piece.members)
      likes.append(given[i]);
    const nb::object parts = framework().cut(call.give(piece.memory), likes);
    for (std::size_t n = 0; n < piece.members.size(); ++n) {
      put(nn::kChainGiven + piece.members[n], nb::object(parts[n]));
      is_cut[piece.members[n]] = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_cut[i]) put(nn::kChainGiven + i, call.give(gradients.parameters[i]));
  }
  return nb::borrow<nb::tuple>(all);
}

bool types_fit(nb::handle features, nb::handle other, nb::handle parameters, nb::handle running,
               bool rounds) {
  const Items learned(parameters, "parameters");
  const Items statistics(running, "running statistics");
  try {
    const TensorLook x = look_at(features, "features");
    const bool on_device = x.device_index >= 0;
    const bool is_double = x.dtype == DType::f64;
    if (!is_floating(x.dtype) || (is_double && on_device)) return false;
    if (!other.is_none() && look_at(other, "residual").dtype != x.dtype) return false;
    const DType sums = is_double ? DType::f64 : DType::f32;
    // Two of a norm: of the type of sums, or of the features' type, as after model.half().
    const auto pair_fits = [&](nb::handle first, nb::handle second) {
      const TensorLook one = look_at(first, "a parameter");
      const TensorLook two = look_at(second, "a parameter");
      return (one.dtype == sums || one.dtype == x.dtype) && two.dtype == one.dtype &&
             one.is_contiguous && two.is_contiguous && !is_negated_once(first) &&
             !is_negated_once(second);
    };
    for (std::size_t i = 0; i < learned.size(); i += nn::kLinkParameters) {
      const TensorLook weight = look_at(learned[i], "a parameter");
      const bool fits = weight.dtype == x.dtype || (on_device && rounds && weight.dtype == sums);
      if (!fits || !weight.is_contiguous || is_negated_once(learned[i]) ||
          !pair_fits(learned[i + 1], learned[i + 2]))
        return false;
    }
    for (std::size_t i = 0; i < statistics.size(); i += kRunning) {
      if (!pair_fits(statistics[i], statistics[i + 1])) return false;
    }
  } catch (const UserError&) {   // a type that no kernel takes
    return false;
  }
  return true;
}

MadeOf::MadeOf(nb::handle parameters, nb::handle running) {
  const Items learned(parameters, "parameters");
  for (std::size_t i = 0; i < learned.size(); ++i)
    add(learned[i]);
  const Items statistics(running, "running statistics");
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    const bool is_number_of_batches = i % kRunning == kRunning - 1;
    if (!is_number_of_batches) add(statistics[i]);
  }
}

void MadeOf::add(nb::handle tensor) {
  // Changes of tensors of inference mode nobody counts.
  const bool is_counted = call_method(tensor, names().is_inference).ptr() == Py_False;
  const std::int64_t version =
      is_counted ? nb::cast<std::int64_t>(attribute(tensor, names().version)) : 0;
  parts_.push_back({tensor.ptr(), look_at(tensor, "a parameter").data, version});
}

}   // namespace pumice::python
