// `pumice kernels check`: whether all kernels compile as they should.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "jit/compile.hpp"
#include "kernels_compile.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

double most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// What a compiler said of kernels that compile alike.
struct Group {
  int sources = 0;
  int least_registers = 0;
  int most_registers = 0;
  int most_shared_bytes = 0;
  int wrong = 0;
  std::vector<double> milliseconds;

  void count(const cuda::PlannedKernel& kernel, const Compiled& done) {
    ++sources;
    milliseconds.push_back(done.milliseconds);
    for (const jit::KernelReport& report : done.result.kernels) {
      least_registers =
          least_registers == 0 ? report.registers : std::min(least_registers, report.registers);
      most_registers = std::max(most_registers, report.registers);
      most_shared_bytes = std::max(most_shared_bytes, report.shared_bytes + kernel.shared_bytes);
    }
  }
  std::string registers_text() const {
    return least_registers == most_registers
               ? fmt::format("{}", most_registers)
               : fmt::format("{} - {}", least_registers, most_registers);
  }
};

nlohmann::ordered_json record_of(const CompileTask& task, const Compiled& done,
                                 const std::string& complaint) {
  auto kernels = nlohmann::ordered_json::array();
  for (const jit::KernelReport& report : done.result.kernels) {
    kernels.push_back({{"name", report.name},
                       {"registers", report.registers},
                       {"shared_bytes", report.shared_bytes + task.kernel.shared_bytes},
                       {"stack_bytes", report.stack_bytes},
                       {"spill_bytes", report.spill_store_bytes + report.spill_load_bytes}});
  }
  return {{"name", task.kernel.source->name},
          {"kind", task.kernel.kind},
          {"architecture", task.architecture.name},
          {"milliseconds", done.milliseconds},
          {"problem", complaint},
          {"kernels", kernels}};
}

/// All that was compiled, by architecture and kind.
struct Findings {
  std::map<std::pair<int, std::string>, Group> groups;
  std::vector<double> milliseconds;
  std::vector<std::string> complaints;
  nlohmann::ordered_json records = nlohmann::ordered_json::array();

  void add(const CompileTask& task, const Compiled& done) {
    const std::string complaint =
        done.failure.empty() ? jit::complaint_about(done.result) : done.failure;
    Group& group = groups[{number_of(task.architecture.name), task.kernel.kind}];
    group.count(task.kernel, done);
    group.wrong += complaint.empty() ? 0 : 1;
    milliseconds.push_back(done.milliseconds);
    records.push_back(record_of(task, done, complaint));
    if (complaint.empty()) return;
    complaints.push_back(
        fmt::format("{} for {}: {}", task.kernel.source->name, task.architecture.name, complaint));
  }
};

void say_json(const Compilation& compilation, const Findings& findings, double seconds) {
  print_json(nlohmann::ordered_json{{"compiler", compiler_text()},
                                    {"sources", compilation.tasks().size()},
                                    {"wrong", findings.complaints.size()},
                                    {"seconds", seconds},
                                    {"median_ms", median(findings.milliseconds)},
                                    {"max_ms", most(findings.milliseconds)},
                                    {"left_out", compilation.left_out()},
                                    {"results", findings.records}});
}

void say_words(const Compilation& compilation, const Findings& findings, double seconds) {
  Table table(
      {"<architecture", "<kind", "sources", "registers", "shared", "wrong", "median ms", "max ms"});
  int last = 0;
  for (const auto& [key, group] : findings.groups) {
    const auto& [number, kind] = key;
    if (last != 0 && last != number) table.add_rule();
    last = number;
    const auto named =
        std::find_if(compilation.architectures().begin(), compilation.architectures().end(),
                     [&](const auto& one) { return number_of(one.name) == last; });
    table.add({named->name, kind, with_commas(group.sources), group.registers_text(),
               group.most_shared_bytes == 0 ? "" : with_commas(group.most_shared_bytes),
               with_commas(group.wrong), fmt::format("{:.0f}", median(group.milliseconds)),
               fmt::format("{:.0f}", most(group.milliseconds))});
  }
  fmt::print(
      "{}\n{} sources by {} in {:.0f} s; one takes a processor {:.0f} ms (median), {:.0f} ms "
      "(slowest)\n",
      table.text(), with_commas(static_cast<long long>(compilation.tasks().size())),
      compiler_text(), seconds, median(findings.milliseconds), most(findings.milliseconds));
  for (const std::string& complaint : findings.complaints)
    fmt::print("{}\n", complaint);
  fmt::print("{}", left_out_text(compilation));
}

}   // namespace

void check_kernels(const KernelArguments& arguments) {
  const Compilation compilation(arguments, true);
  Findings findings;
  compilation.run([&](const CompileTask& task, const Compiled& done,
                      const std::vector<std::byte>&) { findings.add(task, done); });
  const auto print = arguments.json ? say_json : say_words;
  print(compilation, findings, compilation.seconds());
  PUMICE_EXPECTS(findings.complaints.empty(), findings.complaints.size(), " of ",
                 counted(std::ssize(compilation.tasks()), "kernel"),
                 " fail or spill, the first is ", findings.complaints.front());
}

}   // namespace pumice::cli
