// `pumice kernels`: what kernels there are, whether all compile as they should, and a bundle of
// them compiled ahead. None of it needs a device.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "commands.hpp"
#include "kernels_selection.hpp"
#include "options.hpp"
#include "plan_file.hpp"

namespace pumice::cli {
namespace {

using ArgumentsPtr = std::shared_ptr<KernelArguments>;

CLI::App* add_part(CLI::App& kernels, const char* name, const char* what,
                   const ArgumentsPtr& arguments) {
  CLI::App* part = kernels.add_subcommand(name, what);
  part->add_option("--arch", arguments->architectures,
                   "Only these architectures, as in sm_90a (default: all)")
      ->delimiter(',');
  part->add_option("--channels", arguments->channels,
                   "Kernels for these channels, as in 32x64,64x64 (default: those of the networks)")
      ->delimiter(',');
  part->add_option("--precision", arguments->types, "Only these types (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "tf32", "f16", "bf16"}));
  part->add_option("--plans", arguments->tables,
                   "Also what the plans of these tables (JSON, of `pumice tune --out`) ask for");
  add_json(*part, arguments->json);
  return part;
}

void add_compiler(CLI::App& part, const ArgumentsPtr& arguments) {
  part.add_option("--nvrtc", arguments->nvrtc, "The compiler's library, before PUMICE_NVRTC");
  add_threads(part);
}

/// What has to happen before kernels are selected. The environment is read once and has not been
/// yet.
void prepare(KernelArguments& arguments) {
  if (!arguments.nvrtc.empty()) ::setenv("PUMICE_NVRTC", arguments.nvrtc.c_str(), 1);
  for (const std::string& table : arguments.tables)
    std::ranges::move(read_plans(table), std::back_inserter(arguments.plans));
}

}   // namespace

void add_kernels_command(CLI::App& app) {
  CLI::App* kernels =
      app.add_subcommand("kernels", "List kernels, check them, and compile them ahead");
  kernels->require_subcommand(1);
  const auto arguments = std::make_shared<KernelArguments>();

  CLI::App* listing =
      add_part(*kernels, "list", "Every kernel that can be picked, and for what", arguments);
  listing->callback([arguments] {
    prepare(*arguments);
    list_kernels(*arguments);
  });

  CLI::App* building = add_part(*kernels, "build",
                                "Compile what networks ask for into one file that is found without "
                                "a compiler",
                                arguments);
  building->add_flag("--common", arguments->common, "Beside --channels, those of the networks too");
  arguments->out = "pumice.bundle";
  building->add_option("--out", arguments->out, "Where to write it")->capture_default_str();
  add_compiler(*building, arguments);
  building->callback([arguments] {
    prepare(*arguments);
    build_bundle(*arguments);
  });

  CLI::App* checking = add_part(
      *kernels, "check", "Compile every kernel that can be picked; none may spill", arguments);
  add_compiler(*checking, arguments);
  checking->callback([arguments] {
    prepare(*arguments);
    check_kernels(*arguments);
  });
}

}   // namespace pumice::cli
