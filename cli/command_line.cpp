// CLI11's own texts name types of C++ and no remedy, and list all words behind a misspelt one.
#include "command_line.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>

#include "arguments.hpp"

namespace pumice::cli {
namespace {

[[noreturn]] void refuse_words(const std::string& text) {
  throw CLI::ExtrasError(text, CLI::ExitCodes::ExtrasError);
}

void expect_known_options(const CLI::App& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || command.get_option_no_throw(name) != nullptr) continue;
    const std::string similar = similar_option(command, name);
    refuse_words("no option " + name + " of " + command.get_name() +
                 (similar.empty() ? "" : "; is " + similar + " meant?"));
  }
}

/// "run", "kernels build": the command as it is typed.
std::string path_of(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  if (above == nullptr) return "";
  const std::string before = path_of(*above);
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

std::string program_and(const CLI::App& command) {
  const std::string path = path_of(command);
  return path.empty() ? "pumice" : "pumice " + path;
}

/// "pumice run NETWORK SCAN": what has to be given.
std::string form_of(const CLI::App& command) {
  std::string form = program_and(command);
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      const std::string name = option->get_name(true);
      form += " " + (option->get_required() ? name : "[" + name + "]");
    }
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() && option->get_required())
      form += " " + option->get_name() + " …";
  }
  return form;
}

std::string help_of(const CLI::App& command) {
  return "`" + program_and(command) + " --help` says what it takes";
}

/// The option that CLI11 names; null where it names none of this command.
const CLI::Option* option_called(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() == name || option->get_name(true) == name) return option;
  }
  return nullptr;
}

/// "a, b or c" of CLI11's "{a,b,c}"; empty where there is none.
std::string choices_in(const std::string& text) {
  const std::size_t begin = text.find('{');
  const std::size_t end = text.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::string choices = text.substr(begin + 1, end - begin - 1);
  const std::size_t last = choices.rfind(',');
  if (last != std::string::npos) choices.replace(last, 1, " or ");
  for (std::size_t at = choices.find(','); at != std::string::npos; at = choices.find(',', at + 2))
    choices.replace(at, 1, ", ");
  return choices;
}

/// What to give for an option: "a whole number", "32 or 64"; empty for a text.
std::string wanted_by(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (const std::string choices = choices_in(type); !choices.empty()) return choices;
  if (type.starts_with("INT")) return "a whole number";
  if (type.starts_with("UINT")) return "a whole number of at least 0";
  if (type.starts_with("FLOAT")) return "a number";
  return {};
}

std::string numbers(const std::string& count) {
  return count + (count == "1" ? " number" : " numbers");
}

/// What stands before and behind the first `mark`; both empty where it is not there.
std::pair<std::string, std::string> around(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

/// Of "--range: At least 6 required but received 2".
std::string miscounted(const std::string& text) {
  const auto [name, said] = around(text, ": At ");
  auto [bound, received] = around(said, " required but received ");
  if (bound.starts_with('M')) bound.front() = 'm';
  return name + ": " + numbers(received) + " given, and at " + bound +
         " needed; give them with spaces or commas between";
}

std::string unexpected(const CLI::App& command, const std::string& words) {
  const std::string word = words.substr(0, words.find(' '));
  if (word.starts_with('-')) return "no option " + word + " of " + command.get_name();
  return word + " is one argument too many: `" + form_of(command) + "`; " + help_of(command);
}

/// CLI11's first line in other words; as it is where it says already what is wrong.
std::string reworded(const CLI::App& command, const std::string& text) {
  constexpr std::string_view kMissing = " is required";
  const std::string unconverted = around(text, "Could not convert: ").second;
  if (text.ends_with(kMissing)) {
    return text.substr(0, text.size() - kMissing.size()) + " is missing: `" + form_of(command) +
           "`; " + help_of(command);
  }
  if (text.find(" required but received ") != std::string::npos) return miscounted(text);
  if (text.starts_with("The following argument"))
    return unexpected(command, around(text, " not expected: ").second);
  const auto [name, said] = unconverted.empty() ? around(text, ": ") : around(unconverted, " = ");
  const CLI::Option* option = option_called(command, name);
  if (option == nullptr) return text;
  if (option->get_items_expected_max() == 0) return name + " takes no value: write it alone";
  if (said.ends_with(" missing") && said.find(" required ") != std::string::npos) {
    const std::string count = around(said, " required ").first;
    if (count != "1") return name + " has no value behind it; give " + numbers(count);
    const std::string wanted = wanted_by(*option);
    return name + " has no value behind it" + (wanted.empty() ? "" : "; give " + wanted);
  }
  if (!unconverted.empty()) {
    const std::string wanted = wanted_by(*option);
    return name + " " + said + ": give " + (wanted.empty() ? "another value" : wanted);
  }
  if (choices_in(option->get_type_name()).empty()) return text;
  const std::string value = said.substr(0, said.find(" not in {"));
  return name + " " + value + ": choose " + wanted_by(*option);
}

/// How many words an option of several numbers takes, itself among them; 1 for any other word, and
/// where there are too few numbers.
std::size_t words_of(const CLI::App& command, std::span<const std::string> words) {
  if (!words[0].starts_with("--")) return 1;
  const CLI::Option* const option = command.get_option_no_throw(words[0]);
  if (option == nullptr || option->get_delimiter() != ',') return 1;
  std::size_t count = 1;
  std::int64_t numbers = 0;
  while (count < words.size() && numbers < option->get_items_expected_max()) {
    const std::int64_t here = numbers_in(words[count]);
    if (here == 0) break;
    numbers += here;
    ++count;
  }
  return numbers >= option->get_items_expected_min() ? count : 1;
}

}   // namespace

void expect_known_command(const CLI::App& app, std::span<const std::string> words) {
  const std::string given = words.empty() ? "" : words[0];
  const bool is_whole = app.get_require_subcommand_min() == 0;   // without one of its commands
  if (is_whole && &chosen_command(app, words) == &app) return expect_known_options(app, words);
  if (app.get_option_no_throw(given) != nullptr) return;   // --help, --version
  std::vector<std::string> names;
  std::string known;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == given) return expect_known_command(*command, words.subspan(1));
    names.push_back(command->get_name());
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  if (given == "convert" && app.get_parent() == nullptr) {
    refuse_words("convert is a command of the Python package; install that, and its pumice has it");
  }
  const std::string of = app.get_parent() == nullptr ? "" : " of " + app.get_name();
  if (app.get_parent() == nullptr) {
    names.emplace_back("convert");
    known += ", and convert in the Python package";
  }
  const std::string similar = given.empty() ? "" : similar_word(names, given);
  refuse_words("no command" + (given.empty() ? "" : " \"" + given + "\"") + of +
               (similar.empty() ? "; there are " : "; is " + similar + " meant? There are ") +
               known);
}

const CLI::App& chosen_command(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return app;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == words[0]) return chosen_command(*command, words.subspan(1));
  }
  return app;
}

std::vector<std::string> with_numbers_last(const CLI::App& command,
                                           const std::vector<std::string>& words) {
  std::vector<std::string> first, last;
  for (std::size_t at = 0; at < words.size();) {
    if (words[at] == "--") {
      last.insert(last.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      break;
    }
    const std::size_t end = at + words_of(command, std::span(words).subspan(at));
    std::vector<std::string>& to = end > at + 1 ? last : first;
    to.insert(to.end(), words.begin() + static_cast<std::ptrdiff_t>(at),
              words.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

std::string sentence(const CLI::App& command, const CLI::ParseError& error) {
  std::string text = error.what();
  text.erase(std::min(text.find('\n'), text.size()));
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) ||
      text.find(" not expected: ") != std::string::npos)
    text = reworded(command, text);
  return text.find("; ") != std::string::npos ? text : text + "; " + help_of(command);
}

std::string as_typed(const CLI::App& command, const std::string& text) {
  struct Name {
    std::string_view argument;   // how the library's sentence begins
    const char* option;
    std::string_view kept;   // what stays of that beginning
  };
  static constexpr std::array kNames = {
      Name{"threads = ", "--threads", ""},
      Name{"sweeps = ", "--sweeps", ""},
      Name{"width factor = ", "--width-factor", ""},
      Name{"device \"", "--device", "\""},
      Name{"voxel size ", "--voxel", ": the size "},
      Name{"range along ", "--range", ": the range along "},
      Name{"picture ", "--size", ": the picture's "},
      Name{"dataflow = ", "--dataflow", ""},
      Name{"reduction = ", "--reduction", ""},
      Name{"widths = ", "--widths", ""},
      Name{"layout = ", "--layout", ""},
      Name{"kernel size", "--kernel", ": the kernel's size"},
      Name{"stride[", "--stride", ": stride["},
      Name{"padding[", "--padding", ": padding["},
      Name{"dilation[", "--dilation", ": dilation["},
      Name{"spatial_shape[", "--spatial-shape", ": spatial_shape["},
      Name{"network = ", "NETWORK", ""},
      Name{"power_law_edges: nodes = ", "--nodes", ""},
      Name{"power_law_edges: edges = ", "--edges", ""},
  };
  for (const Name& name : kNames) {
    if (!text.starts_with(name.argument) || command.get_option_no_throw(name.option) == nullptr)
      continue;
    const bool is_apart = !name.kept.starts_with(':');
    return std::string(name.option) + (is_apart ? " " : "") + std::string(name.kept) +
           text.substr(name.argument.size());
  }
  return text;
}

}   // namespace pumice::cli
