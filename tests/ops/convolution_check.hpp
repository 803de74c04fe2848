// Runs a generated convolution through the public interface and compares the output and every
// gradient with the reference.
//
// Tolerance. A sum of n products in an arithmetic of unit roundoff u, in any order, is within
// γ(n) · Σ|x||w| of the exact one, γ(n) = n·u / (1 − n·u) (Higham, Accuracy and Stability, §3.1);
// scale, shift and residual are three more operations on it. Storing in 16 bits rounds once more,
// by at most the storage type's u times the value (half the smallest subnormal near zero). The
// inputs are rounded to the storage type first, so they are exact on both sides. The reference's
// own rounding, in double, is added with the same formula. On a device matrix instructions cut what
// they add off instead of rounding it, u = 2^-23, and sums of parts are added up, up to 64 of them.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/ops/convolution.hpp>

#include "ops/convolution_case.hpp"

namespace pumice::test {

inline double unit_roundoff(DType type) {
  switch (type) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}
inline DType compute_type(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

/// A tensor of the case's type where the case runs and, exactly, its values as the reference sees
/// them.
struct Values {
  Tensor tensor;
  std::vector<double> exact;

  Values() = default;
  Values(const Shape& shape, DType type, Random& random, StreamView stream = {}) {
    std::vector<double> drawn(static_cast<std::size_t>(shape.elements()));
    for (double& value : drawn)
      value = random.uniform(-1, 1);
    tensor = Tensor::from<double>(drawn, shape).to(type);
    const Tensor widened = tensor.to(DType::f64);
    exact.assign(widened.span<double>().begin(), widened.span<double>().end());
    if (stream.device.kind == DeviceKind::cuda) tensor = copy_to(stream, tensor);
  }
};

inline double tolerance(double value, double magnitude, std::int64_t terms, DType type,
                        bool on_device = false) {
  const auto n = static_cast<double>(terms + (on_device ? 64 : 3));
  const double u = unit_roundoff(compute_type(type)) * (on_device ? 2 : 1);
  const double computing = (n * u / (1 - n * u) + n * 0x1p-53) * magnitude;
  const double storing =
      type == compute_type(type) ? 0 : unit_roundoff(type) * (std::abs(value) + computing);
  return computing + storing + (type == DType::f16 ? 0x1p-25 : 0x1p-126);
}

/// The first element outside its tolerance, in words; empty when there is none.
inline std::string compare(const char* what, const Tensor& result, const reference::Sum& expected,
                           DType type) {
  const bool on_device = result.device().kind == DeviceKind::cuda;
  const Tensor widened =
      (on_device ? copy_to_host(result, result.stream()) : result).to(DType::f64);
  const auto values = widened.span<double>();
  std::ostringstream text;
  if (values.size() != expected.value.size()) {
    text << what << ": " << values.size() << " elements, expected " << expected.value.size();
    return text.str();
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound =
        tolerance(expected.value[i], expected.magnitude[i], expected.terms[i], type, on_device);
    if (!(std::abs(values[i] - expected.value[i]) <= bound)) {   // NaN fails too
      text << what << '[' << i << "] = " << values[i] << ", expected " << expected.value[i] << " ± "
           << bound << " (" << expected.terms[i] << " terms)";
      return text.str();
    }
  }
  return {};
}

inline reference::Sites sites_of(const CoordinateSet& set) {
  const Tensor coordinates = set.device().kind == DeviceKind::cuda
                                 ? copy_to_host(set.coordinates(), set.stream())
                                 : set.coordinates();
  const auto values = coordinates.span<std::int32_t>();
  const auto width = static_cast<std::size_t>(set.dimension()) + 1;
  reference::Sites sites;
  for (std::size_t row = 0; row < static_cast<std::size_t>(set.size()); ++row) {
    sites.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(row * width),
                       values.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  }
  return sites;
}

inline Axes to_axes(const std::vector<int>& values, std::int32_t rest) {
  Axes result{rest, rest, rest, rest};
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

inline CoordinateSetPtr to_set(const reference::Sites& sites, int dimension,
                               const std::optional<std::vector<int>>& shape,
                               StreamView stream = {}) {
  std::vector<std::int32_t> flat;
  for (const reference::Site& site : sites)
    flat.insert(flat.end(), site.begin(), site.end());
  CoordinateOptions options;
  if (shape) options.spatial_shape = to_axes(*shape, 1);
  const auto set = CoordinateSet::create(
      Tensor::from<std::int32_t>(flat, {static_cast<std::int64_t>(sites.size()), 1 + dimension}),
      options);
  return CoordinateSet::copy_to(set, stream);
}

inline KernelWindow window_of(const ConvolutionCase& c) {
  KernelWindow window;
  window.dimension = c.dimension;
  window.size = to_axes(c.geometry.size, 1);
  window.stride = to_axes(c.geometry.stride, 1);
  window.padding = to_axes(c.geometry.padding, 0);
  window.dilation = to_axes(c.geometry.dilation, 1);
  return window;
}

/// The map of a case by the library, and its pairs by the reference.
struct CaseMap {
  KernelMapPtr map;
  KernelMapView view;
  reference::Meetings meetings;
  std::string complaint;   // what is wrong with the output sites or the number of pairs
};

inline std::vector<int> strided_extent(const ConvolutionCase& c) {
  std::vector<int> result;
  for (std::size_t i = 0; i < c.geometry.size.size(); ++i) {
    const int reach = c.geometry.dilation[i] * (c.geometry.size[i] - 1) + 1;
    result.push_back(((*c.shape)[i] + 2 * c.geometry.padding[i] - reach) / c.geometry.stride[i] +
                     1);
  }
  return result;
}

inline std::vector<int> transposed_extent(const ConvolutionCase& c) {
  std::vector<int> result;
  for (std::size_t i = 0; i < c.geometry.size.size(); ++i) {
    const int reach = c.geometry.dilation[i] * (c.geometry.size[i] - 1) + 1;
    result.push_back(((*c.shape)[i] - 1) * c.geometry.stride[i] - 2 * c.geometry.padding[i] +
                     reach);
  }
  return result;
}

inline CaseMap build_case_map(const ConvolutionCase& c, StreamView stream = {}) {
  CaseMap result;
  const CoordinateSetPtr in = to_set(c.in, c.dimension, c.shape, stream);
  const KernelWindow window = window_of(c);
  std::set<reference::Site> expected;
  switch (c.mode) {
    case Mode::submanifold: {
      const KernelWindow centred = submanifold_window(c.dimension, window.size, window.dilation);
      if (centred != window) result.complaint = "submanifold_window is not centred";
      result.map = submanifold_map(in, centred);
      expected.insert(c.in.begin(), c.in.end());
      break;
    }
    case Mode::dilating:
    case Mode::inverse:
      result.map = strided_map(in, window, StridedOutputs::dilating);
      expected = reference::dilating_outputs(
          c.in, c.geometry, c.shape ? std::optional(strided_extent(c)) : std::nullopt);
      break;
    case Mode::cell:
      result.map = strided_map(in, window, StridedOutputs::cell);
      expected = reference::cell_outputs(c.in, c.geometry,
                                         c.shape ? std::optional(strided_extent(c)) : std::nullopt);
      break;
    case Mode::transposed:
      result.map = transposed_map(in, to_set(c.target, c.dimension, std::nullopt, stream), window);
      expected.insert(c.target.begin(), c.target.end());
      break;
    case Mode::generative:
      result.map = generative_map(in, window);
      expected = reference::generated_outputs(
          c.in, c.geometry, c.shape ? std::optional(transposed_extent(c)) : std::nullopt);
      break;
    case Mode::between:
      result.map = map_between(in, to_set(c.target, c.dimension, std::nullopt, stream), window);
      expected.insert(c.target.begin(), c.target.end());
      break;
  }
  const reference::Sites out = sites_of(*result.map->out());
  if (std::set<reference::Site>(out.begin(), out.end()) != expected ||
      out.size() != expected.size()) {
    result.complaint = "output sites differ: " + std::to_string(out.size()) + ", expected " +
                       std::to_string(expected.size());
  }
  const bool upwards = c.mode == Mode::transposed || c.mode == Mode::generative;
  result.meetings = upwards ? reference::transposed_meetings(c.in, out, c.geometry)
                            : reference::meetings(c.in, out, c.geometry);
  result.view = result.map->view();
  if (c.mode == Mode::inverse) {
    result.meetings = reference::inverse(result.meetings);
    result.view = transposed(result.view);
  }
  // Those of a map on a device are counted there.
  const bool counted = stream.device.kind == DeviceKind::cpu;
  if (counted && result.view.pairs() != static_cast<std::int64_t>(result.meetings.size())) {
    result.complaint += " pairs = " + std::to_string(result.view.pairs()) + ", expected " +
                        std::to_string(result.meetings.size());
  }
  return result;
}

/// The epilogue of a case, on the tensors and in the reference's numbers.
struct CaseEpilogue {
  Values scale, shift, residual;
  Epilogue epilogue;

  CaseEpilogue(const ConvolutionCase& c, std::int64_t out_rows, Random& random, StreamView stream) {
    const DType compute = compute_type(c.dtype);
    if (c.scale) scale = Values({c.out_channels}, compute, random, stream);
    if (c.bias) shift = Values({c.out_channels}, compute, random, stream);
    if (c.residual) residual = Values({out_rows, c.out_channels}, c.dtype, random, stream);
    if (c.scale) epilogue.scale = scale.tensor;
    if (c.bias) epilogue.shift = shift.tensor;
    if (c.residual) epilogue.residual = residual.tensor;
    if (c.relu) epilogue.activation = Activation::relu;
  }

  void apply(const ConvolutionCase& c, reference::Sum& sum) const {
    for (std::size_t i = 0; i < sum.value.size(); ++i) {
      const std::size_t channel = i % static_cast<std::size_t>(c.out_channels);
      if (c.scale) {
        sum.value[i] *= scale.exact[channel];
        sum.magnitude[i] *= std::abs(scale.exact[channel]);
      }
      const double added =
          (c.bias ? shift.exact[channel] : 0.0) + (c.residual ? residual.exact[i] : 0.0);
      sum.value[i] += added;
      sum.magnitude[i] += (c.bias ? std::abs(shift.exact[channel]) : 0.0) +
                          (c.residual ? std::abs(residual.exact[i]) : 0.0);
      if (c.relu) sum.value[i] = std::max(sum.value[i], 0.0);   // never widens a difference
    }
  }
};

/// The tensors of a case, and what the reference makes of them.
struct CaseData {
  ConvolutionCase c;
  CaseMap map;
  Random random{c.seed, 1};
  KernelMapView view;
  Values features, weight, grad_output;
  CaseEpilogue epilogue;
  reference::Problem problem;
  reference::Sum output, grad_features, grad_weight, grad_bias;

  CaseData(const ConvolutionCase& of, CaseMap between, StreamView stream)
      : c(of),
        map(std::move(between)),
        view(map.view),
        features({view.in_rows, c.in_channels}, c.dtype, random, stream),
        weight({view.offsets, c.in_channels / c.groups, c.out_channels}, c.dtype, random, stream),
        grad_output({view.out_rows, c.out_channels}, c.dtype, random, stream),
        epilogue(c, view.out_rows, random, stream),
        problem{map.meetings,  view.in_rows,   view.out_rows, view.offsets,
                c.in_channels, c.out_channels, c.groups},
        output(reference::forward(problem, features.exact, weight.exact)),
        grad_features(reference::input_gradient(problem, grad_output.exact, weight.exact)),
        grad_weight(reference::weight_gradient(problem, features.exact, grad_output.exact)),
        grad_bias(reference::bias_gradient(problem, grad_output.exact)) {
    epilogue.apply(c, output);
  }

  ConvolutionOptions forward_options() const {
    return {.groups = c.groups, .epilogue = epilogue.epilogue};
  }
  std::string check_forward(const ConvolutionOptions& options) const {
    return compare("output", convolution(features.tensor, weight.tensor, view, options), output,
                   c.dtype);
  }
  std::string check_input_gradient(const ConvolutionOptions& options) const {
    return compare("grad_features",
                   convolution_input_gradient(grad_output.tensor, weight.tensor, view, options),
                   grad_features, c.dtype);
  }
  std::string check_weight_gradient(const ConvolutionOptions& options) const {
    return compare("grad_weight",
                   convolution_weight_gradient(features.tensor, grad_output.tensor, view, options),
                   grad_weight, c.dtype);
  }
};

/// Empty when the case passes where `stream` is, else what differs.
inline std::string check_case(const ConvolutionCase& c, StreamView stream = {}) {
  CaseMap map = build_case_map(c, stream);
  if (!map.complaint.empty()) return map.complaint;
  const CaseData data(c, std::move(map), stream);
  ConvolutionOptions options = data.forward_options();
  options.dataflow = c.dataflow;
  std::string complaint = data.check_forward(options);
  options.epilogue = {};
  if (complaint.empty()) complaint = data.check_input_gradient(options);
  options.dataflow.reset();   // a weight gradient takes none
  options.numerics.deterministic = c.seed % 2 == 1;
  if (complaint.empty()) complaint = data.check_weight_gradient(options);
  if (complaint.empty()) {
    complaint = compare("grad_bias", bias_gradient(data.grad_output.tensor), data.grad_bias,
                        compute_type(c.dtype));
  }
  return complaint;
}

}   // namespace pumice::test
