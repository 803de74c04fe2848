// Kernels that go over features element by element. All are bound by memory, so one kernel serves
// every type: the switch is the same for all threads and costs less than a module for each.
#pragma once

#include <pumice/ops/elementwise_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/activation.h>
#include <pumice/thread/activation_gradient.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// Four neighbouring elements, fewer at the end of an array whose start is 16-byte aligned.
template <ElementType kType>
PUMICE_DEVICE void load_elements(const void* data, int64_t first, int64_t end,
                                 float (&value)[kElementsPerThread]) {
  if (first + kElementsPerThread <= end) {
    load_chunk<kType, kElementsPerThread * element_bytes(kType)>(data, first, value,
                                                                 kElementsPerThread);
  } else {
    load_chunk<kType, element_bytes(kType)>(data, first, value, static_cast<int32_t>(end - first));
  }
}

template <ElementType kType>
PUMICE_DEVICE void store_elements(void* data, int64_t first, int64_t end,
                                  const float (&value)[kElementsPerThread]) {
  if (first + kElementsPerThread <= end) {
    store_chunk<kType, kElementsPerThread * element_bytes(kType)>(data, first, value,
                                                                  kElementsPerThread);
  } else {
    store_chunk<kType, element_bytes(kType)>(data, first, value, static_cast<int32_t>(end - first));
  }
}

PUMICE_DEVICE void load_elements(ElementType type, const void* data, int64_t first, int64_t end,
                                 float (&value)[kElementsPerThread]) {
  switch (type) {
    case ElementType::f16: return load_elements<ElementType::f16>(data, first, end, value);
    case ElementType::bf16: return load_elements<ElementType::bf16>(data, first, end, value);
    default: return load_elements<ElementType::f32>(data, first, end, value);
  }
}

PUMICE_DEVICE void store_elements(ElementType type, void* data, int64_t first, int64_t end,
                                  const float (&value)[kElementsPerThread]) {
  switch (type) {
    case ElementType::f16: return store_elements<ElementType::f16>(data, first, end, value);
    case ElementType::bf16: return store_elements<ElementType::bf16>(data, first, end, value);
    default: return store_elements<ElementType::f32>(data, first, end, value);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void combine_elements(
    PUMICE_ARGUMENT(CombineArguments) a) {
  wait_for_previous();
  const int64_t first = global_thread_index() * kElementsPerThread;
  if (first >= a.elements) return;
  float left[kElementsPerThread];
  float right[kElementsPerThread];
  load_elements(a.type, a.left, first, a.elements, left);
  load_elements(a.type, a.right, first, a.elements, right);
  PUMICE_UNROLL
  for (int i = 0; i < kElementsPerThread; ++i) {
    switch (a.combination) {
      case Combination::add: left[i] += right[i]; break;
      case Combination::subtract: left[i] -= right[i]; break;
      case Combination::multiply: left[i] *= right[i]; break;
    }
  }
  store_elements(a.type, a.out, first, a.elements, left);
}

PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void convert_elements(
    PUMICE_ARGUMENT(ConvertArguments) a) {
  wait_for_previous();
  const int64_t first = global_thread_index() * kElementsPerThread;
  if (first >= a.elements) return;
  float value[kElementsPerThread];
  load_elements(a.in_type, a.in, first, a.elements, value);
  PUMICE_UNROLL
  for (int i = 0; i < kElementsPerThread; ++i)
    value[i] *= a.factor;
  store_elements(a.out_type, a.out, first, a.elements, value);
}

PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void activate_elements(
    PUMICE_ARGUMENT(ActivateArguments) a) {
  wait_for_previous();
  const int64_t first = global_thread_index() * kElementsPerThread;
  if (first >= a.elements) return;
  float value[kElementsPerThread];
  load_elements(a.type, a.in, first, a.elements, value);
  if (a.gradient == nullptr) {
    const float below = negative_slope(a.activation, a.slope);
    PUMICE_UNROLL
    for (int i = 0; i < kElementsPerThread; ++i)
      value[i] = activate<ActivationSet::all>(value[i], a.activation, below);
  } else {
    float gradient[kElementsPerThread] = {};
    load_elements(a.type, a.gradient, first, a.elements, gradient);
    PUMICE_UNROLL
    for (int i = 0; i < kElementsPerThread; ++i)
      value[i] = gradient[i] * activation_slope(value[i], a.activation, a.slope);
  }
  store_elements(a.type, a.out, first, a.elements, value);
}

PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void affine_elements(PUMICE_ARGUMENT(AffineArguments)
                                                                       a) {
  wait_for_previous();
  const int64_t first = global_thread_index() * kElementsPerThread;
  if (first >= a.elements) return;
  float value[kElementsPerThread];
  load_elements(a.type, a.in, first, a.elements, value);
  int64_t channel = first % a.channels;
  PUMICE_UNROLL
  for (int i = 0; i < kElementsPerThread; ++i) {
    value[i] = value[i] * a.scale[channel] + a.shift[channel];
    channel = channel + 1 == a.channels ? 0 : channel + 1;
  }
  store_elements(a.type, a.out, first, a.elements, value);
}

/// Number c of a parameter, `absent` where there is none.
PUMICE_DEVICE double parameter(ElementType type, const void* data, int64_t c, double absent) {
  return data == nullptr ? absent : static_cast<double>(load_element(type, data, c));
}

/// Of FoldArguments or ShortcutNormArguments.
template <class Norm> PUMICE_DEVICE double folded_scale(const Norm& norm, int64_t c) {
  return parameter(norm.parameter_type, norm.weight, c, 1.0) /
         sqrt(parameter(norm.statistic_type, norm.variance, c, 1.0) + norm.epsilon);
}

template <class Norm>
PUMICE_DEVICE double folded_shift(const Norm& norm, int64_t c, double before, double scale) {
  return parameter(norm.parameter_type, norm.bias, c, 0.0) +
         (before - parameter(norm.statistic_type, norm.mean, c, 0.0)) * scale;
}

/// A row of the grid for each norm; in fp64, as the CPU folds: it runs once a network.
PUMICE_KERNEL PUMICE_THREADS(kElementThreads) void fold_norms(PUMICE_ARGUMENT(FoldNormsArguments)
                                                                  arguments) {
  wait_for_previous();
  const FoldArguments& a = arguments.norm[block_index_y()];
  const int64_t c = global_thread_index();
  if (c >= a.channels) return;
  const double scale = folded_scale(a, c);
  double shift = folded_shift(a, c, parameter(a.before_type, a.before, c, 0.0), scale);
  if (a.shortcut.mean != nullptr)
    shift += folded_shift(a.shortcut, c, 0.0, folded_scale(a.shortcut, c));
  a.scale[c] = static_cast<float>(scale);
  a.shift[c] = static_cast<float>(shift);
}

}   // namespace pumice
