// Checks what is folded, makes room and calls the back end.
#include <pumice/ops/folded_norm.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/folded_norm.hpp"
#include "ops/cuda/folded_norm.hpp"

namespace pumice {
namespace {

constexpr const char* kOp = "fold_batch_norm";

/// The compute type.
DType check(const SettledNorm& norm) {
  checks::epsilon(norm.epsilon, kOp);
  PUMICE_EXPECTS(is_floating(norm.mean.dtype()), kOp, ": mean holds ", name_of(norm.mean.dtype()),
                 "; convert it to f64, f32, f16 or bf16");
  const DType compute = checks::compute_dtype(norm.mean.dtype());
  const auto check_one = [&](ConstTensorView tensor, const char* name) {
    // Each may be of a type of its own: a layer in half precision before a norm that is not.
    const bool is_narrow = tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
    const DType storage = is_narrow && compute == DType::f32 ? tensor.dtype() : compute;
    checks::norm_parameter(tensor, norm.mean.elements(), storage, kOp, name);
    checks::same_device(tensor, norm.mean, kOp, name, "mean");
  };
  check_one(norm.mean, "mean");
  check_one(norm.variance, "variance");
  check_one(norm.weight, "weight");
  check_one(norm.bias, "bias");
  check_one(norm.added_before, "added_before");
  checks::same_dtype(norm.variance, norm.mean.dtype(), kOp, "variance", "mean");
  if (norm.weight.defined() && norm.bias.defined())
    checks::same_dtype(norm.bias, norm.weight.dtype(), kOp, "bias", "weight");
  return compute;
}

/// The compute type, of a norm and of the one whose shift joins its own.
DType check_both(const SettledNorm& norm) {
  const DType compute = check(norm);
  if (norm.shortcut == nullptr) return compute;
  const SettledNorm& shortcut = *norm.shortcut;
  PUMICE_EXPECTS(shortcut.mean.shape() == norm.mean.shape(), kOp,
                 ": the shortcut's mean has shape ", to_string(shortcut.mean.shape()),
                 ", that of what it is added to ", to_string(norm.mean.shape()),
                 ": give norms of as many channels");
  PUMICE_EXPECTS(check(shortcut) == compute, kOp, ": the shortcut's mean holds ",
                 name_of(shortcut.mean.dtype()), ", that of what it is added to ",
                 name_of(norm.mean.dtype()), ": give norms of one compute type");
  PUMICE_EXPECTS(!shortcut.added_before.defined() && shortcut.shortcut == nullptr, kOp,
                 ": the shortcut's norm has a bias before it, or a shortcut of its own: fold it by "
                 "itself");
  checks::same_device(shortcut.mean, norm.mean, kOp, "the shortcut's mean", "mean");
  return compute;
}

void fold(std::span<const SettledNorm> norms, std::span<const FoldedInto> results) {
  if (checks::on_cuda(norms.front().mean))
    cuda::fold_norms(norms, results);
  else
    cpu::fold_norms(norms, results);
}

}   // namespace

ScaleShift fold_batch_norm(ConstTensorView mean, ConstTensorView variance, ConstTensorView weight,
                           ConstTensorView bias, ConstTensorView added_before, double epsilon,
                           const ScaleShiftPlaces& places) {
  const SettledNorm norm{mean, variance, weight, bias, added_before, epsilon};
  const DType compute = check(norm);
  ScaleShift folded{places.scale.make(mean.shape(), compute, mean.stream(), "places.scale"),
                    places.shift.make(mean.shape(), compute, mean.stream(), "places.shift")};
  const FoldedInto into{folded.scale.view(), folded.shift.view()};
  fold({&norm, 1}, {&into, 1});
  return folded;
}

ScaleShifts fold_batch_norms(std::span<const SettledNorm> norms, const Place& place) {
  ScaleShifts result;
  if (norms.empty()) return result;
  const ConstTensorView& first = norms.front().mean;
  const DType compute = checks::compute_dtype(first.dtype());
  constexpr std::int64_t together = 4;   // epilogues read as many at once
  std::int64_t elements = 0;
  std::vector<std::int64_t> starts;
  for (const SettledNorm& norm : norms) {
    PUMICE_EXPECTS(check_both(norm) == compute, kOp, ": norms of ", name_of(first.dtype()),
                   " and of ", name_of(norm.mean.dtype()),
                   "; fold those of one compute type at once");
    checks::same_device(norm.mean, first, kOp, "mean", "that of the first norm");
    starts.push_back(elements);
    elements += 2 * ((norm.mean.elements() + together - 1) / together * together);
  }
  result.memory = place.make({elements}, compute, first.stream());
  std::vector<FoldedInto> into;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const Shape& shape = norms[i].mean.shape();
    const std::int64_t end = i + 1 < norms.size() ? starts[i + 1] : elements;
    const auto at = [&](std::int64_t element) {
      std::byte* const start = static_cast<std::byte*>(result.memory.raw());
      return TensorView(start + static_cast<std::size_t>(element) * size_of(compute), compute,
                        shape, first.stream());
    };
    into.push_back({at(starts[i]), at((starts[i] + end) / 2)});
    result.of_norm.push_back({into.back().scale, into.back().shift});
  }
  fold(norms, into);
  return result;
}

}   // namespace pumice
