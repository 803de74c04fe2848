// The `pumice` program: hands the arguments to a subcommand and turns failures into one sentence.
// Exit codes: 0 done, 1 an input or a value is at fault, 2 the command line cannot be read, 3
// pumice is.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>   // all of it, once in the program: options.hpp

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "arguments.hpp"
#include "command_line.hpp"
#include "commands.hpp"
#include "core/environment.hpp"
#include "core/printable.hpp"
#include "jit/dependent_launch.hpp"

namespace {

using pumice::Newlines;
using pumice::printable_message;

/// Whatever an argument, a file or its name put into it, a sentence stays one.
void say_failure(const std::string& text, Newlines newlines = Newlines::escaped) {
  fmt::print(stderr, "pumice: {}\n", printable_message(text, newlines));
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options())
      option->check(pumice::cli::not_empty);
    refuse_empty_values(*command);
  }
}

}   // namespace

int main(int argc, char** argv) {
  using namespace pumice;
  CLI::App app(
      "Sparse tensors for deep learning: convolutions over LiDAR scans and other point clouds.",
      "pumice");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("pumice ") + PUMICE_VERSION);
  cli::add_info_command(app);
  cli::add_run_command(app);
  cli::add_tune_command(app);
  cli::add_explain_command(app);
  cli::add_conv_command(app);
  cli::add_spmm_command(app);
  cli::add_sddmm_command(app);
  cli::add_rgms_command(app);
  cli::add_rgcn_command(app);
  cli::add_simulate_command(app);
  cli::add_voxelize_command(app);
  cli::add_view_command(app);
  cli::add_bench_command(app);
  cli::add_inspect_command(app);
  cli::add_plans_command(app);
  cli::add_kernels_command(app);
  cli::add_doctor_command(app);
  refuse_empty_values(app);

  // Past `ulimit -f` a write then fails with a sentence, and its unfinished file goes.
  std::signal(SIGXFSZ, SIG_IGN);
  check_log_topics();
  std::vector<std::string> words = cli::readable_words(argc, argv);
  const auto behind_the_name = [&] {
    return std::span<const std::string>(words).subspan(std::min<std::size_t>(1, words.size()));
  };
  const CLI::App& command = cli::chosen_command(app, behind_the_name());
  words = cli::with_numbers_last(command, words);
  const std::span<const std::string> arguments = behind_the_name();
  std::vector<const char*> texts;
  for (const std::string& word : words)
    texts.push_back(word.c_str());
  try {
    (void)environment::waits_after_launch();   // refused before any work
    (void)jit::dependent_launches();
    cli::expect_known_command(app, arguments);
    app.parse(argc, texts.data());
  } catch (const CLI::Success& done) {   // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    say_failure(cli::sentence(command, error));
    return 2;
  } catch (const InternalError& error) {
    say_failure(error.what(), Newlines::kept);
    return 3;
  } catch (const UserError& error) {
    say_failure(cli::as_typed(command, error.what()));
    return 1;
  } catch (const std::exception& error) {   // may hold what a compiler printed
    say_failure(error.what(), Newlines::kept);
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "pumice: standard output cannot be written; is the disk full?\n");
    return 1;
  }
  return 0;
}
