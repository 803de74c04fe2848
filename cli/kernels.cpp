// `pumice kernels`: what kernels there are, whether all compile as they should, and a bundle of
// them compiled ahead. None of it needs a device.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/jit/support.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "jit/bundle_file.hpp"
#include "jit/bundle_set.hpp"
#include "jit/nvrtc.hpp"
#include "kernels/cuda/architecture.hpp"
#include "nn/device_kernels.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

using cuda::NamedArchitecture;
using cuda::PlannedKernel;

struct KernelArguments {
  std::vector<std::string> architectures;
  std::vector<std::string> channels;   // "32x64"
  bool common = false;
  std::vector<std::string> types;
  std::string nvrtc;
  std::string out;
  bool json = false;
};

std::vector<NamedArchitecture> architectures_of(const KernelArguments& arguments) {
  std::vector<NamedArchitecture> chosen;
  std::string known;
  std::size_t found = 0;
  for (const NamedArchitecture& architecture : cuda::known_architectures()) {
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
    const bool asked = std::find(arguments.architectures.begin(), arguments.architectures.end(),
                                 architecture.name) != arguments.architectures.end();
    if (asked || arguments.architectures.empty()) chosen.push_back(architecture);
    found += asked ? 1 : 0;
  }
  const std::set<std::string> asked(arguments.architectures.begin(), arguments.architectures.end());
  PUMICE_EXPECTS(found == asked.size(), "--arch ", fmt::format("{}", fmt::join(asked, " ")),
                 ": kernels are specified for ", known);
  return chosen;
}

/// 90 of "sm_90a", as NVRTC counts.
int number_of(std::string_view architecture) {
  int number = 0;
  std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number;
}

/// Without those that this NVRTC does not know, unless they were asked for by name: then it says so
/// when it compiles.
std::vector<NamedArchitecture> compilable(const KernelArguments& arguments) {
  std::vector<NamedArchitecture> chosen = architectures_of(arguments);
  (void)jit::nvrtc();   // refuses where there is none
  if (!arguments.architectures.empty()) return chosen;
  const std::vector<int>& known = jit::nvrtc_state().architectures;
  std::erase_if(chosen, [&](const NamedArchitecture& architecture) {
    return std::find(known.begin(), known.end(), number_of(architecture.name)) == known.end();
  });
  return chosen;
}

std::vector<std::string> unknown_to_compiler(const KernelArguments& arguments,
                                             const std::vector<NamedArchitecture>& compiled) {
  std::vector<std::string> names;
  for (const NamedArchitecture& architecture : architectures_of(arguments)) {
    const bool known = std::any_of(compiled.begin(), compiled.end(),
                                   [&](const auto& one) { return one.bit == architecture.bit; });
    if (!known) names.emplace_back(architecture.name);
  }
  return names;
}

std::vector<std::pair<std::int64_t, std::int64_t>> channels_of(const KernelArguments& arguments) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const std::string& text : arguments.channels) {
    std::int64_t in = 0;
    std::int64_t out = 0;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, in);
    const bool crossed = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
    const auto second = crossed ? std::from_chars(first.ptr + 1, end, out) : first;
    constexpr std::int64_t kMost = 1 << 16;
    PUMICE_EXPECTS(crossed && second.ec == std::errc() && second.ptr == end && in >= 1 &&
                       out >= 1 && in <= kMost && out <= kMost,
                   "--channels ", text, ": give input and output channels, as in 32x64");
    pairs.emplace_back(in, out);
  }
  return pairs;
}

std::vector<DType> types_of(const KernelArguments& arguments) {
  std::vector<DType> chosen;
  for (const DType type : nn::device_types()) {
    const bool asked = std::find(arguments.types.begin(), arguments.types.end(), name_of(type)) !=
                       arguments.types.end();
    if (asked || arguments.types.empty()) chosen.push_back(type);
  }
  return chosen;
}

/// What networks ask for; with `tables` all that could be picked for them too.
nn::DeviceKernels selection(const KernelArguments& arguments, std::uint32_t architecture,
                            bool tables) {
  nn::DeviceKernels kernels(architecture);
  const std::vector<DType> types = types_of(arguments);
  const auto pairs = channels_of(arguments);
  kernels.add_shared();
  if (pairs.empty() || arguments.common) {
    kernels.add_common(types);
    if (tables) kernels.add_tables();
  }
  for (const auto& [in, out] : pairs)
    kernels.add(in, out, types);
  return kernels;
}

// ---- list

struct Listed {
  PlannedKernel kernel;
  std::vector<std::string> architectures;
};

std::string channels_text(const PlannedKernel& kernel) {
  return kernel.in_channels == 0 ? ""
                                 : fmt::format("{} > {}", kernel.in_channels, kernel.out_channels);
}

void list(const KernelArguments& arguments) {
  std::vector<Listed> listed;
  std::map<std::string, std::size_t> places;   // by source text
  auto counts = nlohmann::ordered_json::object();
  for (const NamedArchitecture& architecture : architectures_of(arguments)) {
    const nn::DeviceKernels kernels = selection(arguments, architecture.bit, true);
    for (const PlannedKernel& kernel : kernels.all()) {
      const auto [place, is_new] = places.emplace(kernel.source->text, listed.size());
      if (is_new) listed.push_back({kernel, {}});
      listed[place->second].architectures.emplace_back(architecture.name);
    }
    counts[architecture.name] = kernels.all().size();
  }
  std::stable_sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) {
    return std::pair(a.kernel.in_channels, a.kernel.out_channels) <
           std::pair(b.kernel.in_channels, b.kernel.out_channels);
  });
  if (arguments.json) {
    auto all = nlohmann::ordered_json::array();
    for (const Listed& entry : listed) {
      all.push_back({{"name", entry.kernel.source->name},
                     {"kind", entry.kernel.kind},
                     {"in_channels", entry.kernel.in_channels},
                     {"out_channels", entry.kernel.out_channels},
                     {"shared_bytes", entry.kernel.shared_bytes},
                     {"architectures", entry.architectures}});
    }
    fmt::print("{}\n",
               nlohmann::ordered_json{
                   {"count", listed.size()}, {"per_architecture", counts}, {"kernels", all}}
                   .dump());
    return;
  }
  Table table({"channels", "<kind", "<specification", "shared", "<architectures"});
  for (const Listed& entry : listed) {
    table.add({channels_text(entry.kernel), entry.kernel.kind, entry.kernel.source->name,
               entry.kernel.shared_bytes == 0 ? "" : with_commas(entry.kernel.shared_bytes),
               fmt::format("{}", fmt::join(entry.architectures, " "))});
  }
  fmt::print("{}\n{} sources:", table.text(), with_commas(static_cast<long long>(listed.size())));
  for (const auto& [name, count] : counts.items())
    fmt::print(" {} {}", count.dump(), name);
  fmt::print("\n");
}

// ---- compiling, for build and check

struct Task {
  NamedArchitecture architecture;
  PlannedKernel kernel;
};

struct Done {
  jit::CompileResult result;
  double milliseconds = 0;   // of a processor: neighbours on the machine do not count
  std::string failure;       // what the compiler said; empty when it compiled
};

std::vector<Task> tasks_for(const KernelArguments& arguments,
                            const std::vector<NamedArchitecture>& architectures, bool tables) {
  std::vector<Task> tasks;
  for (const NamedArchitecture& architecture : architectures) {
    const nn::DeviceKernels kernels = selection(arguments, architecture.bit, tables);
    for (const PlannedKernel& kernel : kernels.all())
      tasks.push_back({architecture, kernel});
  }
  return tasks;
}

double thread_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// Compiles all on as many threads as there are, and hands each on, one at a time.
template <class Take> void compile_all(const std::vector<Task>& tasks, Take&& take) {
  ProgressBar progress("compiling");
  std::mutex mutex;
  int done = 0;
  const auto size = static_cast<std::int64_t>(tasks.size());
  parallel_for(size, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      Done one;
      std::vector<std::byte> packed;
      try {
        const double start = thread_milliseconds();
        one.result = jit::compile(*task.kernel.source, task.architecture.name);
        one.milliseconds = thread_milliseconds() - start;
        packed = jit::BundleWriter::pack(one.result);
      } catch (const UserError&) {
        throw;
      } catch (const Error& error) {
        one.failure = error.what();
      }
      const std::lock_guard lock(mutex);
      take(static_cast<std::size_t>(i), std::move(one), std::move(packed));
      progress.show(++done, static_cast<int>(tasks.size()));
    }
  });
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string compiler_text() {
  return fmt::format("NVRTC {}.{}", jit::nvrtc_state().major, jit::nvrtc_state().minor);
}

// ---- build

void build(const KernelArguments& arguments) {
  check_ending("--out", arguments.out, jit::kBundleSuffix, "a bundle of kernels");
  check_outputs({}, {arguments.out});
  const auto start = std::chrono::steady_clock::now();
  const std::vector<NamedArchitecture> architectures = compilable(arguments);
  const std::vector<Task> tasks = tasks_for(arguments, architectures, false);
  jit::BundleWriter writer;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> parts;   // kernels, bytes
  compile_all(tasks, [&](std::size_t i, Done done, std::vector<std::byte> packed) {
    const Task& task = tasks[i];
    if (!done.failure.empty()) throw Error(done.failure);
    auto& [kernels, bytes] = parts[task.architecture.name];
    kernels += 1;
    bytes += static_cast<std::int64_t>(packed.size());
    const jit::CompilerVersion compiler{jit::nvrtc_state().major, jit::nvrtc_state().minor};
    writer.add({.source = jit::source_digest(*task.kernel.source, task.architecture.name),
                .architecture = task.architecture.name,
                .compiler = compiler,
                .stored_bytes = packed.size()},
               done.result, std::move(packed));
  });
  const std::vector<std::byte> bytes = writer.finish();
  AtomicFile file(arguments.out);
  file.write(bytes);
  file.commit();
  const double seconds = seconds_since(start);
  const auto left_out = unknown_to_compiler(arguments, architectures);

  if (arguments.json) {
    auto all = nlohmann::ordered_json::array();
    for (const NamedArchitecture& architecture : architectures) {
      const auto& [kernels, part] = parts[architecture.name];
      all.push_back({{"architecture", architecture.name}, {"kernels", kernels}, {"bytes", part}});
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"path", arguments.out},
                                              {"kernels", tasks.size()},
                                              {"bytes", bytes.size()},
                                              {"seconds", seconds},
                                              {"compiler", compiler_text()},
                                              {"architectures", all},
                                              {"left_out", left_out}}
                           .dump());
    return;
  }
  constexpr double kMebibyte = 1 << 20;
  Table table({"<architecture", "kernels", "MiB"});
  for (const NamedArchitecture& architecture : architectures) {
    const auto& [kernels, part] = parts[architecture.name];
    table.add({architecture.name, with_commas(kernels),
               fmt::format("{:.1f}", static_cast<double>(part) / kMebibyte)});
  }
  fmt::print("{}\n{} kernels, {:.1f} MiB, by {} in {:.0f} s, written to {}\n", table.text(),
             with_commas(static_cast<long long>(tasks.size())),
             static_cast<double>(bytes.size()) / kMebibyte, compiler_text(), seconds,
             arguments.out);
  if (!left_out.empty())
    fmt::print("left out: {}, which this compiler does not know\n", fmt::join(left_out, ", "));
}

// ---- check

/// What a compiler said of kernels that compile alike.
struct Group {
  int sources = 0;
  int least_registers = 0;
  int most_registers = 0;
  int most_shared_bytes = 0;
  int wrong = 0;
  std::vector<double> milliseconds;
};

void count(Group& group, const PlannedKernel& kernel, const Done& done) {
  ++group.sources;
  group.milliseconds.push_back(done.milliseconds);
  for (const jit::KernelReport& report : done.result.kernels) {
    group.least_registers = group.least_registers == 0
                                ? report.registers
                                : std::min(group.least_registers, report.registers);
    group.most_registers = std::max(group.most_registers, report.registers);
    group.most_shared_bytes =
        std::max(group.most_shared_bytes, report.shared_bytes + kernel.shared_bytes);
  }
}

void check(const KernelArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<NamedArchitecture> architectures = compilable(arguments);
  const std::vector<Task> tasks = tasks_for(arguments, architectures, true);
  std::map<std::pair<int, std::string>, Group> groups;
  std::vector<double> all_milliseconds;
  std::vector<std::string> complaints;
  auto records = nlohmann::ordered_json::array();
  compile_all(tasks, [&](std::size_t i, const Done& done, const std::vector<std::byte>&) {
    const Task& task = tasks[i];
    std::string complaint = done.failure;
    if (complaint.empty()) complaint = jit::complaint_about(done.result);
    Group& group = groups[{number_of(task.architecture.name), task.kernel.kind}];
    count(group, task.kernel, done);
    group.wrong += complaint.empty() ? 0 : 1;
    all_milliseconds.push_back(done.milliseconds);
    if (!complaint.empty()) {
      complaints.push_back(fmt::format("{} for {}: {}", task.kernel.source->name,
                                       task.architecture.name, complaint));
    }
    if (!arguments.json) return;
    auto kernels = nlohmann::ordered_json::array();
    for (const jit::KernelReport& report : done.result.kernels) {
      kernels.push_back({{"name", report.name},
                         {"registers", report.registers},
                         {"shared_bytes", report.shared_bytes + task.kernel.shared_bytes},
                         {"stack_bytes", report.stack_bytes},
                         {"spill_bytes", report.spill_store_bytes + report.spill_load_bytes}});
    }
    records.push_back({{"name", task.kernel.source->name},
                       {"kind", task.kernel.kind},
                       {"architecture", task.architecture.name},
                       {"milliseconds", done.milliseconds},
                       {"problem", complaint},
                       {"kernels", kernels}});
  });
  const double seconds = seconds_since(start);
  const auto left_out = unknown_to_compiler(arguments, architectures);
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  };
  const auto most = [](const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
  };

  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"compiler", compiler_text()},
                                              {"sources", tasks.size()},
                                              {"wrong", complaints.size()},
                                              {"seconds", seconds},
                                              {"median_ms", median(all_milliseconds)},
                                              {"max_ms", most(all_milliseconds)},
                                              {"left_out", left_out},
                                              {"results", records}}
                           .dump());
  } else {
    Table table({"<architecture", "<kind", "sources", "registers", "shared", "wrong", "median ms",
                 "max ms"});
    int last = 0;
    for (const auto& [key, group] : groups) {
      if (last != 0 && last != key.first) table.add_rule();
      last = key.first;
      const auto named = std::find_if(architectures.begin(), architectures.end(),
                                      [&](auto& one) { return number_of(one.name) == key.first; });
      table.add({named->name, key.second, with_commas(group.sources),
                 group.least_registers == group.most_registers
                     ? fmt::format("{}", group.most_registers)
                     : fmt::format("{} - {}", group.least_registers, group.most_registers),
                 group.most_shared_bytes == 0 ? "" : with_commas(group.most_shared_bytes),
                 with_commas(group.wrong), fmt::format("{:.0f}", median(group.milliseconds)),
                 fmt::format("{:.0f}", most(group.milliseconds))});
    }
    fmt::print(
        "{}\n{} sources by {} in {:.0f} s; one takes a processor {:.0f} ms (median), {:.0f} ms "
        "(slowest)\n",
        table.text(), with_commas(static_cast<long long>(tasks.size())), compiler_text(), seconds,
        median(all_milliseconds), most(all_milliseconds));
    for (const std::string& complaint : complaints)
      fmt::print("{}\n", complaint);
    if (!left_out.empty())
      fmt::print("left out: {}, which this compiler does not know\n", fmt::join(left_out, ", "));
  }
  PUMICE_EXPECTS(complaints.empty(), complaints.size(), " of ", tasks.size(),
                 " kernels fail or spill, the first is ", complaints.front());
}

// ---- arguments

using ArgumentsPtr = std::shared_ptr<KernelArguments>;

CLI::App* add_part(CLI::App& kernels, const char* name, const char* what,
                   const ArgumentsPtr& arguments) {
  CLI::App* part = kernels.add_subcommand(name, what);
  part->add_option("--arch", arguments->architectures,
                   "Only these architectures, as in sm_90a (default: all)");
  part->add_option("--channels", arguments->channels,
                   "Kernels for these channels, as in 32x64,64x64 (default: those of the networks)")
      ->delimiter(',');
  part->add_option("--precision", arguments->types, "Only these types (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  add_json(*part, arguments->json);
  return part;
}

void add_compiler(CLI::App& part, const ArgumentsPtr& arguments) {
  part.add_option("--nvrtc", arguments->nvrtc, "The compiler's library, before PUMICE_NVRTC");
  add_threads(part);
}

/// The environment is read once and has not been yet.
void choose_compiler(const KernelArguments& arguments) {
  if (!arguments.nvrtc.empty()) ::setenv("PUMICE_NVRTC", arguments.nvrtc.c_str(), 1);
}

}   // namespace

void add_kernels_command(CLI::App& app) {
  CLI::App* kernels =
      app.add_subcommand("kernels", "List kernels, check them, and compile them ahead");
  kernels->require_subcommand(1);
  const auto arguments = std::make_shared<KernelArguments>();

  CLI::App* listing =
      add_part(*kernels, "list", "Every kernel that can be picked, and for what", arguments);
  listing->callback([arguments] { list(*arguments); });

  CLI::App* building = add_part(*kernels, "build",
                                "Compile what networks ask for into one file that is found without "
                                "a compiler",
                                arguments);
  building->add_flag("--common", arguments->common, "Beside --channels, those of the networks too");
  arguments->out = "pumice.bundle";
  building->add_option("--out", arguments->out, "Where to write it")->capture_default_str();
  add_compiler(*building, arguments);
  building->callback([arguments] {
    choose_compiler(*arguments);
    build(*arguments);
  });

  CLI::App* checking = add_part(
      *kernels, "check", "Compile every kernel that can be picked; none may spill", arguments);
  add_compiler(*checking, arguments);
  checking->callback([arguments] {
    choose_compiler(*arguments);
    check(*arguments);
  });
}

}   // namespace pumice::cli
