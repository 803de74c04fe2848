// What is wrong with a command line, in one sentence in the words that were typed.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}   // namespace CLI

namespace pumice::cli {

/// Throws CLI::ExtrasError for a command or a long option that is not there, and names the one that
/// is spelt most like it.
void expect_known_command(const CLI::App& app, std::span<const std::string> words);

/// The command that `words`, without the program's name, choose: that of `kernels build` is build.
const CLI::App& chosen_command(const CLI::App& app, std::span<const std::string> words);

/// The words with options of several numbers behind all else: CLI11 takes whatever stands behind
/// the numbers for one more of them, as the scan in `--range -10 -10 -3 10 10 3 scan.bin`.
std::vector<std::string> with_numbers_last(const CLI::App& command,
                                           const std::vector<std::string>& words);

/// What CLI11 found wrong, and what to give instead.
std::string sentence(const CLI::App& command, const CLI::ParseError& error);

/// An error of the library, with the option as it was typed where the library names the argument
/// that the option became: "--threads -1: …" of "threads = -1: …".
std::string as_typed(const CLI::App& command, const std::string& text);

}   // namespace pumice::cli
