// Tuning and explaining networks of the framework (pumice/ops/tune_network.hpp).
#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <pumice/core/device.hpp>
#include <pumice/ops/tune_network.hpp>
#include <pumice/plan/plan_book.hpp>
#include <pumice/plan/store.hpp>
#include <pumice/plan/target.hpp>

#include "arguments.hpp"
#include "framework.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

/// What a tuning measured, for a file.
struct PlanTable {
  std::vector<tune::StoredPlan> plans;
};

/// Passes that are functions of Python. What the user does to end the process, as Ctrl-C, is no
/// reason why a candidate cannot be measured: it ends the tuning, and goes on afterwards.
class PythonPasses {
 public:
  PythonPasses(nb::handle run, int scans, StreamView stream)
      : passes_{.run = [this, run = nb::borrow(run)](int scan) { call(run, scan); },
                .scans = scans,
                .stream = stream} {}

  const NetworkPasses& get() const { return passes_; }
  bool is_cancelled() {
    if (!ends_ && PyErr_CheckSignals() != 0) keep();
    return ends_ != nullptr;
  }
  void rethrow_end() const {
    if (ends_) std::rethrow_exception(ends_);
  }

 private:
  void call(const nb::object& run, int scan) {
    try {
      run(scan);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) ends_ = std::current_exception();   // KeyboardInterrupt
      throw;
    }
  }
  void keep() {
    try {
      nb::raise_python_error();
    } catch (...) {
      ends_ = std::current_exception();
    }
  }

  NetworkPasses passes_;
  std::exception_ptr ends_{};
};

/// The GIL is kept: passes need it, and what runs between them asks the framework for memory.
nb::tuple tune(nb::handle run, int scans, const std::string& device, std::optional<double> budget_s,
               bool stores, nb::handle progress) {
  const Call call(parse_device(device));
  PythonPasses passes(run, scans, call.stream());
  tune::Options options;
  options.budget_s = budget_s.value_or(usual_budget_s(call.stream().device));
  options.is_cancelled = [&] { return passes.is_cancelled(); };
  if (!progress.is_none()) {
    options.progress = [progress](double fraction, const std::string& text) {
      progress(fraction, text);
    };
  }
  const NetworkTuning tuning =
      tune_network(passes.get(), options, stores ? &tune::process_plans() : nullptr);
  passes.rethrow_end();
  return nb::make_tuple(tuning.to_json(), tuning.to_text(), PlanTable{tuning.plans});
}

std::int64_t load(const std::string& file) {
  const tune::Merge merge = tune::process_plans().merge(read_plans(file));
  return merge.added + merge.replaced;
}

std::int64_t count_for(const std::string& file, const std::string& device) {
  const Target& target = target_of(parse_device(device));
  const std::vector<tune::StoredPlan> plans = tune::read_plan_table(file);
  return std::count_if(plans.begin(), plans.end(), [&](const tune::StoredPlan& plan) {
    return was_measured_for(plan.key, target);
  });
}

nb::tuple explain(nb::handle run, const std::string& device, bool measures) {
  const Call call(parse_device(device));
  PythonPasses passes(run, 1, call.stream());
  const ExplainedNetwork found = explain_network(passes.get(), measures);
  passes.rethrow_end();
  return nb::make_tuple(to_json(found), to_text(found));
}

}   // namespace

void bind_tuning(nb::module_& module) {
  nb::class_<PlanTable>(module, "PlanTable", "Plans as a file of them has them.")
      .def("__len__", [](const PlanTable& self) { return self.plans.size(); })
      .def(
          "save",
          [](const PlanTable& self, const std::string& file) {
            tune::write_plan_table(file, self.plans);
          },
          "file"_a, "Writes the table; UserError where it cannot be written.");
  define(module, "load_plans", &load, "file"_a,
         "Takes a table into the process's store; how many plans were new.");
  define(module, "count_plans_for", &count_for, "file"_a, "device"_a,
         "How many plans of a table were measured on such a device by this version.");
  define(module, "tune_network", &tune, "run"_a, "scans"_a, "device"_a, "budget_s"_a.none(),
         "stores"_a, "progress"_a.none(),
         "(report as JSON, as a table, PlanTable) of passes run(scan).");
  define(module, "explain_network", &explain, "run"_a, "device"_a, "measures"_a,
         "(candidates as JSON, as a table) of the pass run(0).");
}

}   // namespace pumice::python
