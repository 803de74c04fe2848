// Plans, which come into question for a problem, and which ran.
#include "plans.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <pumice/core/error.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/plan_record.hpp>

#include "arguments.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

Plan with_reason(const std::string& text, std::string reason) {
  ConvolutionPlan plan = parse_plan(text);
  plan.reason = std::move(reason);
  return Plan(std::make_shared<const ConvolutionPlan>(std::move(plan)));
}

PlanPtr held(const Plan* plan) {
  return plan == nullptr ? nullptr : plan->plan;
}

std::optional<Plan> given_back(const PlanPtr& plan) {
  if (plan == nullptr) return std::nullopt;
  return Plan(plan);
}

Direction parse_direction(std::string_view name) {
  for (const Direction direction :
       {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
    if (name == name_of(direction)) return direction;
  }
  pumice::detail::raise_user("direction = \"", name,
                             "\": there are forward, input_gradient and weight_gradient");
}

/// What `convolution` and its gradients are given, as far as a plan may depend on it.
struct Asked {
  std::string direction;
  std::int64_t groups;
  Numerics numerics;
};

/// Nobody reads the numbers of these tensors.
ConvolutionProblem problem_of(const Asked& asked, ConstTensorView features, ConstTensorView weight,
                              const KernelMapView& map) {
  PUMICE_EXPECTS(features.rank() == 2 && weight.rank() == 3, "features have shape ",
                 to_string(features.shape()), " and weight ", to_string(weight.shape()),
                 ": give [rows, channels] and [offsets, input channels / groups, output channels]");
  PUMICE_EXPECTS(weight.extent(1) * asked.groups == features.extent(1), "weight ",
                 to_string(weight.shape()), " in ", asked.groups, " groups takes ",
                 weight.extent(1) * asked.groups, " input channels, but features have ",
                 features.extent(1), ": give those of one convolution");
  PUMICE_EXPECTS(weight.extent(0) == map.offsets, "weight has ", weight.extent(0),
                 " offsets, but the map ", map.offsets, ": give those of one convolution");
  const ConstTensorView made(nullptr, features.dtype(), {map.out_rows, weight.extent(2)},
                             features.stream());
  const ConvolutionOptions options{.groups = asked.groups, .numerics = asked.numerics};
  switch (parse_direction(asked.direction)) {
    case Direction::input_gradient:
      return convolution_input_gradient_problem(made, weight, map, options);
    case Direction::weight_gradient:
      return convolution_weight_gradient_problem(features, made, map, options);
    case Direction::forward: break;
  }
  return convolution_problem(features, weight, map, options);
}

nb::list all_candidates(nb::handle features, nb::handle weight, const Map& map,
                        const std::string& direction, std::int64_t groups, bool deterministic,
                        bool tf32) {
  const Call call(features, home_of(map));
  const ConstTensorView x = call.view(features, "features");
  const ConvolutionProblem problem = problem_of({direction, groups, {deterministic, tf32}}, x,
                                                call.view(weight, "weight"), map.view());
  nb::list result;
  for (Candidate& one : candidates(problem, target_of(x.device())))
    result.append(nb::make_tuple(Plan(std::make_shared<const ConvolutionPlan>(std::move(one.plan))),
                                 one.cost));
  return result;
}

Plan chosen(nb::handle features, nb::handle weight, const Map& map, const std::string& direction,
            std::int64_t groups, bool deterministic, bool tf32) {
  const Call call(features, home_of(map));
  const ConstTensorView x = call.view(features, "features");
  const ConvolutionProblem problem = problem_of({direction, groups, {deterministic, tf32}}, x,
                                                call.view(weight, "weight"), map.view());
  return Plan(choose(problem, target_of(x.device())));
}

/// Of this thread, while somebody records.
std::unique_ptr<PlanRecord>& plan_record() {
  thread_local std::unique_ptr<PlanRecord> record;
  return record;
}

std::vector<RanPlan> ran_plans() {
  return plan_record() == nullptr ? std::vector<RanPlan>() : plan_record()->take();
}

std::vector<RanSparsePlan> ran_sparse_plans() {
  return plan_record() == nullptr ? std::vector<RanSparsePlan>() : plan_record()->take_sparse();
}

void record_plans(bool on) {
  plan_record().reset();   // before another one begins
  if (on) plan_record() = std::make_unique<PlanRecord>();
}

nb::list recorded_plans() {
  nb::list result;
  for (const RanPlan& ran : ran_plans()) {
    if (ran.direction == Direction::forward)
      result.append(nb::make_tuple(ran.plan->name(), ran.plan->reason));
  }
  for (const RanSparsePlan& ran : ran_sparse_plans()) {
    if (ran.problem.direction == SparseDirection::forward)
      result.append(nb::make_tuple(ran.plan->name(), ran.plan->reason));
  }
  return result;
}

nb::list recorded_plans_of_all() {
  (void)ran_sparse_plans();   // which nobody may ask for, as long as they are recorded
  nb::list result;
  for (const RanPlan& ran : ran_plans())
    result.append(nb::make_tuple(std::string(name_of(ran.direction)), Plan(ran.plan)));
  return result;
}

/// Equality, hash and copies of what is told apart by its text.
template <class Value> void bind_value(nb::class_<Value>& bound) {
  bound
      .def(
          "__eq__",
          [](const Value& self, nb::handle other) {
            return nb::isinstance<Value>(other) && nb::cast<const Value&>(other).text == self.text;
          },
          "other"_a.none())
      .def("__hash__", [](const Value& self) { return nb::hash(nb::str(self.text.c_str())); })
      .def("__copy__", [](nb::handle_t<Value> self) { return nb::borrow(self); })
      .def(
          "__deepcopy__", [](nb::handle_t<Value> self, nb::handle) { return nb::borrow(self); },
          "memo"_a)
      .def("__str__", [](const Value& self) { return self.text; })
      .def_prop_ro(
          "text", [](const Value& self) { return self.text; },
          "JSON of one line, which makes it again.");
}

constexpr const char* kAboutPlan =
    R"(How a convolution runs: its dataflow, and the sizes, order and splits that belong to it. It does not change;
plans are equal where they run alike.

Args:
    text: a line of JSON, as `text` and `str` give it.
Raises:
    UserError: the text is no plan. Whether it suits a layer is known in the call that it is for.
Waits:
    Never.
Example:
    >>> plan = pumice.Plan('{"dataflow":"fetch_on_demand","tile_rows":512}')
    >>> plan
    <Plan fetch_on_demand/512>
    >>> pumice.Plan(plan.text) == plan
    True)";

void bind_plan(nb::module_& module) {
  nb::class_<Plan> bound(module, "Plan", kAboutPlan);
  bound
      .def(
          "__init__",
          [](Plan* self, nb::handle text) {
            if (!nb::isinstance<nb::str>(text)) refuse_argument("text", text, "a str");
            new (self) Plan(with_reason(nb::cast<std::string>(text), "given"));
          },
          nb::sig("def __init__(self, text: str) -> None"), "text"_a)
      .def("__getstate__",
           [](const Plan& plan) { return std::make_tuple(plan.text, plan.plan->reason); })
      .def("__setstate__",
           [](Plan& self, const std::tuple<std::string, std::string>& state) {
             new (&self) Plan(with_reason(std::get<0>(state), std::get<1>(state)));
           })
      .def("__repr__", [](const Plan& self) { return "<Plan " + self.plan->name() + ">"; })
      .def_prop_ro(
          "name", [](const Plan& self) { return self.plan->name(); },
          "As tables show it: \"fetch_on_demand/512\".")
      .def_prop_ro(
          "reason", [](const Plan& self) { return self.plan->reason; },
          "Why it was chosen, in a sentence; \"given\" where it was made of a text.")
      .def_prop_ro(
          "dataflow", [](const Plan& self) { return std::string(name_of(self.plan->dataflow)); },
          "\"implicit_gemm\", \"fetch_on_demand\", \"gather_gemm_scatter\"; of a weight "
          "gradient \"sum_over_pairs\".")
      .def_prop_ro(
          "sort_by_mask", [](const Plan& self) { return self.plan->sort_by_mask; },
          "Of implicit GEMM: whether outputs with like neighbours share a tile.")
      .def_prop_ro(
          "splits", [](const Plan& self) { return self.plan->splits; },
          "Of implicit GEMM: the parts that the offsets are cut into; else 1.");
  bind_value(bound);
}

void bind_layer_plans(nb::module_& module) {
  nb::class_<Plans> bound(module, "Plans", "The plans of a layer; None: chosen when it runs.");
  bound
      .def(
          "__init__",
          [](Plans* self, const Plan* forward, const Plan* input_gradient,
             const Plan* weight_gradient) {
            new (self) Plans({held(forward), held(input_gradient), held(weight_gradient)});
          },
          "forward"_a.none(), "input_gradient"_a.none(), "weight_gradient"_a.none())
      .def_static(
          "of",
          [](const std::string& text, const std::string& alone) {
            return Plans(parse_layer_plans(text, parse_direction(alone)));
          },
          "text"_a, "alone"_a,
          "Of a text as `text` gives it, or of that of one plan, of direction `alone`.")
      .def("__getstate__", [](const Plans& plans) { return plans.text; })
      .def("__setstate__",
           [](Plans& self, const std::string& text) { new (&self) Plans(parse_layer_plans(text)); })
      .def("__repr__", [](const Plans& self) { return "<Plans " + self.text + ">"; })
      .def_prop_ro("forward", [](const Plans& self) { return given_back(self.plans.forward); })
      .def_prop_ro("input_gradient",
                   [](const Plans& self) { return given_back(self.plans.input_gradient); })
      .def_prop_ro("weight_gradient",
                   [](const Plans& self) { return given_back(self.plans.weight_gradient); })
      .def_prop_ro(
          "round_weights", [](const Plans& self) { return self.plans.round_weights(); },
          "Whether kernels round a float32 weight of features in half precision.");
  bind_value(bound);
}

}   // namespace

void bind_plans(nb::module_& module) {
  bind_plan(module);
  bind_layer_plans(module);
  define(module, "candidates", &all_candidates, "features"_a, "weight"_a, "map"_a, "direction"_a,
         "groups"_a, "deterministic"_a, "tf32"_a,
         "[(plan, predicted time)], the time in parts of the first plan's.");
  define(module, "plan_of", &chosen, "features"_a, "weight"_a, "map"_a, "direction"_a, "groups"_a,
         "deterministic"_a, "tf32"_a, "The plan that runs where none is given.");
  define(module, "record_plans", &record_plans, "on"_a,
         "Whether to record the plans of this thread's convolutions; forgets earlier ones.");
  define(module, "recorded_plans", &recorded_plans,
         "[(name, reason)] of the forward convolutions since the last call.");
  define(
      module, "recorded_plans_of_all", &recorded_plans_of_all,
      "[(direction, plan)] of convolutions and gradients since the last call; forgets products of "
      "sparse matrices.");
}

}   // namespace pumice::python
