// Losses over the rows in use.
#include <pumice/core/error.hpp>
#include <pumice/ops/cross_entropy.hpp>

#include "arguments.hpp"
#include "row_counts.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::tuple loss(nb::handle scores, nb::handle labels, nb::handle weight, std::int64_t ignored,
               double smoothing, nb::handle count) {
  const Call call(scores, home_of_count(count));
  const ConstTensorView x = call.view(scores, "scores");
  const ConstTensorView y = call.view(labels, "labels");
  const GivenCount rows(call, count, x);
  const CrossEntropyOptions options{.weight = call.view(weight, "weight"),
                                    .ignored = ignored,
                                    .smoothing = smoothing,
                                    .rows = rows.get()};
  FrameworkResults& results = call.results();
  const CrossEntropy made = call.run([&] {
    return cross_entropy(x, y, options, {.loss = results, .weight = results, .log_sum = results});
  });
  return nb::make_tuple(call.give(made.loss), call.give(made.weight), call.give(made.log_sum));
}

nb::object loss_gradient(nb::handle scores, nb::handle labels, nb::handle weight,
                         std::int64_t ignored, double smoothing, nb::handle count, nb::handle total,
                         nb::handle log_sum, nb::handle grad_loss) {
  const Call call(scores, home_of_count(count));
  const ConstTensorView x = call.view(scores, "scores");
  const ConstTensorView y = call.view(labels, "labels");
  const GivenCount rows(call, count, x);
  const CrossEntropyOptions options{.weight = call.view(weight, "weight"),
                                    .ignored = ignored,
                                    .smoothing = smoothing,
                                    .rows = rows.get()};
  const CrossEntropySums sums{single_view_of(total, "total", call.stream()),
                              call.view(log_sum, "log_sum")};
  const ConstTensorView g = single_view_of(grad_loss, "grad_loss", call.stream());
  return call.give(
      call.run([&] { return cross_entropy_gradient(x, y, sums, g, options, call.results()); }));
}

}   // namespace

void bind_losses(nb::module_& module) {
  define(module, "cross_entropy", &loss, "scores"_a, "labels"_a, "weight"_a.none(), "ignored"_a,
         "smoothing"_a, "count"_a.none(),
         "([1] loss, [1] sum of the weights, [rows] logarithms of sums)");
  define(module, "cross_entropy_gradient", &loss_gradient, "scores"_a, "labels"_a,
         "weight"_a.none(), "ignored"_a, "smoothing"_a, "count"_a.none(), "total"_a, "log_sum"_a,
         "grad_loss"_a, "[rows, classes], 0 in rows that do not count.");
}

}   // namespace pumice::python
