// Checks the arguments of cross entropy and hands them to the back end.
#include <pumice/ops/cross_entropy.hpp>

#include <limits>

#include <pumice/core/error.hpp>
#include <pumice/ops/rows.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/cross_entropy.hpp"
#include "ops/cuda/cross_entropy.hpp"
#include "ops/rows_in_use.hpp"

namespace pumice {
namespace {

void check(ConstTensorView scores, ConstTensorView labels, const CrossEntropyOptions& options,
           const char* op) {
  checks::matrix(scores, op, "scores");
  const std::int64_t classes = scores.extent(1);
  PUMICE_EXPECTS(classes > 0 && classes <= std::numeric_limits<std::int32_t>::max(), op,
                 ": scores has shape ", to_string(scores.shape()),
                 "; it must have 1 to 2^31 - 1 "
                 "classes");
  PUMICE_EXPECTS(labels.rank() == 1 && labels.rows() == scores.rows(), op, ": labels has shape ",
                 to_string(labels.shape()), "; it must be [", scores.rows(),
                 "], one for each row of scores");
  PUMICE_EXPECTS(labels.dtype() == DType::i64 || labels.dtype() == DType::i32, op,
                 ": labels holds ", name_of(labels.dtype()), "; convert it to i64 or i32");
  checks::same_device(labels, scores, op, "labels", "scores");
  checks::parameter(options.weight, classes, scores.dtype(), op, "weight");
  checks::same_device(options.weight, scores, op, "weight", "scores");
  PUMICE_EXPECTS(options.smoothing >= 0 && options.smoothing <= 1, op,
                 ": smoothing = ", options.smoothing, "; it is a share, 0 to 1");
}

void check_number(ConstTensorView tensor, ConstTensorView scores, const char* op,
                  const char* name) {
  PUMICE_EXPECTS(tensor.elements() == 1 && tensor.defined() &&
                     tensor.dtype() == checks::compute_dtype(scores.dtype()),
                 op, ": ", name, " is ", name_of(tensor.dtype()), ' ', to_string(tensor.shape()),
                 "; it must be one ", name_of(checks::compute_dtype(scores.dtype())));
  checks::same_device(tensor, scores, op, name, "scores");
}

/// On the host.
double number(ConstTensorView tensor) {
  return tensor.dtype() == DType::f64 ? *tensor.data<double>() : double{*tensor.data<float>()};
}
void store(TensorView tensor, double value) {
  if (tensor.dtype() == DType::f64)
    *tensor.data<double>() = value;
  else
    *tensor.data<float>() = static_cast<float>(value);
}

}   // namespace

CrossEntropy cross_entropy(ConstTensorView scores, ConstTensorView labels,
                           const CrossEntropyOptions& options, const CrossEntropyPlaces& places) {
  const char* op = "cross_entropy";
  check(scores, labels, options, op);
  const RowsInUse used(options.rows, scores, op);
  const DType compute = checks::compute_dtype(scores.dtype());
  const StreamView stream = scores.stream();
  CrossEntropy made{places.loss.make({1}, compute, stream, "places.loss"),
                    places.weight.make({1}, compute, stream, "places.weight"),
                    places.log_sum.make({scores.rows()}, compute, stream, "places.log_sum")};
  scores = used.of(scores);
  labels = used.of(labels);
  const TensorView log_sum = used.of(made.log_sum.view());
  if (checks::on_cuda(scores)) {
    cuda::cross_entropy(scores, labels, used.ref(), options, made.loss.view(), made.weight.view(),
                        log_sum);
    return made;
  }
  const cpu::LossSums sums = cpu::cross_entropy(scores, labels, options, log_sum);
  store(made.loss.view(), sums.loss / sums.weight);
  store(made.weight.view(), sums.weight);
  return made;
}

Tensor cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels,
                              const CrossEntropySums& made, ConstTensorView grad_loss,
                              const CrossEntropyOptions& options, const Place& place) {
  const char* op = "cross_entropy_gradient";
  check(scores, labels, options, op);
  check_number(grad_loss, scores, op, "grad_loss");
  check_number(made.weight, scores, op, "made.weight");
  PUMICE_EXPECTS(
      made.log_sum.shape() == labels.shape() && made.log_sum.dtype() == made.weight.dtype(), op,
      ": made.log_sum is ", name_of(made.log_sum.dtype()), ' ', to_string(made.log_sum.shape()),
      "; give what cross_entropy returned");
  checks::same_device(made.log_sum, scores, op, "made.log_sum", "scores");
  const RowsInUse used(options.rows, scores, op);
  Tensor grad = place.make(scores.shape(), scores.dtype(), scores.stream());
  if (used.host_knows() && options.rows != nullptr) clear_tail(grad.view(), *options.rows);
  const TensorView output = used.of(grad.view());
  const ConstTensorView log_sum = used.of(made.log_sum);
  scores = used.of(scores);
  labels = used.of(labels);
  if (checks::on_cuda(scores)) {
    cuda::cross_entropy_gradient(scores, labels, used.ref(), options, log_sum, made.weight,
                                 grad_loss, output);
    return grad;
  }
  cpu::cross_entropy_gradient(scores, labels, options, log_sum,
                              number(grad_loss) / number(made.weight), output);
  return grad;
}

}   // namespace pumice
