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

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/environment.hpp"
#include "core/printable.hpp"

namespace {

using pumice::Newlines;
using pumice::printable_message;

/// CLI11 would list all words behind an option that it does not know.
void expect_known_options(const CLI::App& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || command.get_option_no_throw(name) != nullptr) continue;
    const std::string similar = pumice::cli::similar_option(command, name);
    throw CLI::ExtrasError("no option " + name + " of " + command.get_name() +
                               (similar.empty() ? "" : "; is " + similar + " meant?"),
                           CLI::ExitCodes::ExtrasError);
  }
}

/// CLI11 would say that a subcommand is missing where one is misspelt or preceded by an option.
void expect_known_command(const CLI::App& app, std::span<const std::string> words) {
  if (app.get_require_subcommand_min() == 0) return expect_known_options(app, words);
  const std::string given = words.empty() ? "" : words[0];
  if (app.get_option_no_throw(given) != nullptr) return;   // --help, --version
  std::string known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == given) return expect_known_command(*command, words.subspan(1));
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  if (given == "convert" && app.get_parent() == nullptr) {
    throw CLI::ExtrasError(
        "convert is a command of the Python package; install that, and its pumice has it",
        CLI::ExitCodes::ExtrasError);
  }
  const std::string of = app.get_parent() == nullptr ? "" : " of " + app.get_name();
  if (app.get_parent() == nullptr) known += ", and convert in the Python package";
  throw CLI::ExtrasError(
      "no command" + (given.empty() ? "" : " \"" + given + "\"") + of + "; there are " + known,
      CLI::ExitCodes::ExtrasError);
}

/// CLI11's first line, which says what is wrong, and what helps where it does not say that.
std::string sentence(const CLI::ParseError& error, const std::string& command) {
  std::string text = error.what();
  text.erase(std::min(text.find('\n'), text.size()));
  if (text.find("; ") != std::string::npos) return text;
  // "--range: At least 6 required but received 1"
  const bool miscounted = text.find(" required but received ") != std::string::npos;
  return text +
         (miscounted ? "; give them with spaces or commas between: `pumice " : "; `pumice ") +
         command + " --help` says what it takes";
}

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
  cli::add_simulate_command(app);
  cli::add_voxelize_command(app);
  cli::add_view_command(app);
  cli::add_bench_command(app);
  cli::add_plans_command(app);
  cli::add_kernels_command(app);
  cli::add_doctor_command(app);
  refuse_empty_values(app);

  // Past `ulimit -f` a write then fails with a sentence, and its unfinished file goes.
  std::signal(SIGXFSZ, SIG_IGN);
  check_log_topics();
  const std::vector<std::string> words = cli::readable_words(argc, argv);
  std::vector<const char*> texts;
  for (const std::string& word : words)
    texts.push_back(word.c_str());
  try {
    (void)environment::waits_after_launch();   // refused before any work
    expect_known_command(app, std::span(words).subspan(1));
    app.parse(argc, texts.data());
  } catch (const CLI::Success& done) {   // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    say_failure(sentence(error, argc > 1 ? argv[1] : ""));
    return 2;
  } catch (const InternalError& error) {
    say_failure(error.what(), Newlines::kept);
    return 3;
  } catch (const UserError& error) {
    say_failure(error.what());
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
