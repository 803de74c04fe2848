// `pumice inspect`: how the entries of a sparse matrix or the edges of a graph are spread.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/graphs/row_lengths.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "edges_input.hpp"
#include "outputs.hpp"
#include "picture_pattern.hpp"
#include "picture_size.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct InspectArguments {
  std::string input;
  std::string picture;
  PictureSize size;
  std::int64_t channels = 32;
  std::string device = "cpu";
  bool json = false;
};

struct Relation {
  std::int64_t number = 0;
  std::string name{};   // as in the file, or empty
  std::int64_t edges = 0;
};

/// Those with most edges first, of as many in the order of their numbers.
std::vector<Relation> relations_of(const EdgesInput& edges) {
  std::vector<Relation> relations(static_cast<std::size_t>(edges.relations));
  for (std::size_t r = 0; r < relations.size(); ++r) {
    relations[r].number = static_cast<std::int64_t>(r);
    if (!edges.relation_names.empty()) relations[r].name = edges.relation_names[r];
  }
  for (const std::int64_t type : edges.type.span<std::int64_t>())
    ++relations[static_cast<std::size_t>(type)].edges;
  std::ranges::stable_sort(relations, std::ranges::greater{}, &Relation::edges);
  return relations;
}

/// What a sum over the entries with weights, in f32, would run by.
SparsePlanPtr choice_for(const InspectArguments& arguments, const EdgesInput& edges,
                         const std::vector<std::int64_t>& lengths) {
  PUMICE_EXPECTS(arguments.channels >= 1 && arguments.channels <= kMostChannels, "--channels ",
                 arguments.channels, ": features have 1 to ", kMostChannels);
  auto histogram = std::make_shared<RowLengths>();
  for (const std::int64_t length : lengths)
    ++histogram->rows[length_bucket(length)];
  histogram->longest = longest(lengths);
  const SparseProblem problem{.rows = edges.rows,
                              .columns = edges.columns,
                              .entries = edges.entries(),
                              .channels = arguments.channels,
                              .weighted = true,
                              .lengths = histogram};
  return choose(problem, target_of(parse_device(arguments.device)));
}

/// Edges of one relation that lead to one node are one.
std::int64_t segments_of(const EdgesInput& edges) {
  const auto row = edges.row.span<std::int64_t>(), type = edges.type.span<std::int64_t>();
  std::vector<std::int64_t> segments(row.size());
  for (std::size_t e = 0; e < row.size(); ++e)
    segments[e] = type[e] * edges.rows + row[e];
  std::ranges::sort(segments);
  return static_cast<std::int64_t>(std::ranges::unique(segments).begin() - segments.begin());
}

std::string lengths_table(const std::vector<LengthClass>& classes) {
  std::int64_t most = 1;
  for (const LengthClass& one : classes)
    most = std::max(most, one.rows);
  Table table({"entries", "rows", "<"});
  for (const LengthClass& one : classes) {
    // A row more is seen where there was none.
    const auto marks = static_cast<std::size_t>((40 * one.rows + most - 1) / most);
    table.add({range_of(one), with_commas(one.rows), std::string(marks, '#')});
  }
  return table.text();
}

/// All of a few relations; of many those with most and with fewest edges.
std::string relations_table(const std::vector<Relation>& relations) {
  constexpr std::size_t kEnds = 5;
  Table table({"relation", "edges", "<name"});
  const bool few = relations.size() <= 2 * kEnds;
  for (std::size_t r = 0; r < relations.size(); ++r) {
    if (!few && r == kEnds) {
      table.add_rule();
      r = relations.size() - kEnds;
    }
    table.add({with_commas(relations[r].number), with_commas(relations[r].edges),
               printable(relations[r].name)});
  }
  return table.text();
}

void print_words(const InspectArguments& arguments, const EdgesInput& edges,
                 const std::vector<std::int64_t>& lengths, const std::vector<LengthClass>& classes,
                 const SparsePlan& choice) {
  fmt::print(
      "{}: {} x {}, {}{}\nlongest row {}, empty rows {}, {:.2f} entries a row\n", edges.name,
      with_commas(edges.rows), with_commas(edges.columns),
      counted(edges.entries(), "entry", "entries"),
      edges.has_types() ? " of " + counted(edges.relations, "relation") : "",
      with_commas(longest(lengths)), with_commas(std::ranges::count(lengths, std::int64_t{0})),
      edges.rows == 0 ? 0.0
                      : static_cast<double>(edges.entries()) / static_cast<double>(edges.rows));
  if (!classes.empty()) fmt::print("\n{}", lengths_table(classes));
  if (edges.has_types()) fmt::print("\n{}", relations_table(relations_of(edges)));
  fmt::print("\nspmm f32, {}, {}: {}: {}\n", counted(arguments.channels, "channel"),
             arguments.device, choice.name(), choice.reason);
  if (edges.has_types())
    fmt::print("rgms: {}, each the edges of one relation that lead to one node\n",
               counted(segments_of(edges), "segment"));
}

nlohmann::ordered_json to_json(const InspectArguments& arguments, const EdgesInput& edges,
                               const std::vector<std::int64_t>& lengths,
                               const std::vector<LengthClass>& classes, const SparsePlan& choice) {
  auto by_length = nlohmann::ordered_json::array();
  for (const LengthClass& one : classes)
    by_length.push_back({{"from", one.from}, {"to", one.to}, {"rows", one.rows}});
  nlohmann::ordered_json said{{"rows", edges.rows},
                              {"columns", edges.columns},
                              {"entries", edges.entries()},
                              {"longest_row", longest(lengths)},
                              {"empty_rows", std::ranges::count(lengths, std::int64_t{0})},
                              {"row_lengths", by_length},
                              {"spmm",
                               {{"channels", arguments.channels},
                                {"device", arguments.device},
                                {"cut", choice.name_of_format()},
                                {"plan", choice.name()},
                                {"reason", choice.reason}}}};
  if (!edges.has_types()) return said;
  auto relations = nlohmann::ordered_json::array();
  for (const Relation& one : relations_of(edges))
    relations.push_back({{"number", one.number}, {"name", one.name}, {"edges", one.edges}});
  said["relations"] = relations;
  said["segments"] = segments_of(edges);
  return said;
}

void inspect(const InspectArguments& arguments) {
  check_outputs({arguments.input}, {{"--picture", arguments.picture, Format::picture}});
  arguments.size.check(arguments.picture);
  const EdgesInput edges = read_edges(arguments.input);
  const std::vector<std::int64_t> lengths = row_lengths(edges);
  const std::vector<LengthClass> classes = length_classes(lengths);
  const SparsePlanPtr choice = choice_for(arguments, edges, lengths);
  if (!arguments.picture.empty()) {
    PictureOptions options;
    arguments.size.set(options);
    options.caption =
        fmt::format("{}: {} x {}, {}; spmm of {} over {}", edges.name, with_commas(edges.rows),
                    with_commas(edges.columns), counted(edges.entries(), "entry", "entries"),
                    counted(arguments.channels, "channel"), choice->name());
    write_png(arguments.picture, render_pattern(edges, classes, options));
  }
  if (arguments.json) {
    nlohmann::ordered_json said = to_json(arguments, edges, lengths, classes, *choice);
    if (!arguments.picture.empty()) said["picture"] = arguments.picture;
    return print_json(said);
  }
  print_words(arguments, edges, lengths, classes, *choice);
  if (!arguments.picture.empty())
    fmt::print("\npicture written to {}\n", printable_path(arguments.picture));
}

}   // namespace

void add_inspect_command(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Say how the entries of a sparse matrix or the edges of a graph are spread");
  command
      ->add_option("INPUT", arguments->input,
                   "A Matrix Market file (.mtx), or a safetensors file or folder of edges as "
                   "`pumice rgcn` takes it, whose rows are the nodes that edges lead to")
      ->required();
  command->add_option("--picture", arguments->picture,
                      "The PNG to write: the pattern, and rows by their entries");
  arguments->size.add_to(*command);
  command
      ->add_option("--channels", arguments->channels,
                   "Of the features of the product whose plan is said")
      ->capture_default_str();
  command->add_option("--device", arguments->device, "Where: cpu, cuda or cuda:1")
      ->capture_default_str();
  add_json(*command, arguments->json);
  command->callback([arguments] { inspect(*arguments); });
}

}   // namespace pumice::cli
