// The `pumice` program: hands the arguments to a subcommand and turns failures into one sentence.
// Exit codes: 0 done, 1 an input or a value is at fault, 2 the command line cannot be read, 3
// pumice is.
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/core.h>

#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "commands.hpp"

namespace {

/// CLI11 may add a line about --help; the first line is the sentence.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// CLI11 would say that a subcommand is missing where one is misspelt.
void expect_known_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == argv[1]) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  throw CLI::ExtrasError("no command \"" + std::string(argv[1]) + "\"; there are " + known,
                         CLI::ExitCodes::ExtrasError);
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
  cli::add_conv_command(app);
  cli::add_simulate_command(app);
  cli::add_voxelize_command(app);
  cli::add_view_command(app);
  cli::add_bench_command(app);
  cli::add_doctor_command(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options())
      option->check(cli::not_empty);
  }

  try {
    expect_known_command(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {   // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "pumice: {}\n", first_line(error.what()));
    return 2;
  } catch (const InternalError& error) {
    fmt::print(stderr, "pumice: {}\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pumice: {}\n", error.what());
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "pumice: standard output cannot be written; is the disk full?\n");
    return 1;
  }
  return 0;
}
