// Finds out what a folder holds, and puts together what OpenKE spreads over several files.
#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "graphs/edge_list.hpp"
#include "points/text.hpp"

namespace pumice {
namespace {

using std::filesystem::path;
using Reader = TypedEdges (*)(std::span<const std::byte>, std::string_view);

constexpr const char* kTrain = "train2id.txt";
constexpr std::array<std::string_view, 3> kParts{"train", "valid", "test"};

TypedEdges read(const path& file, Reader reader) {
  const Buffer<std::byte> bytes = detail::read_file(file);
  return reader(bytes.span(), printable_path(file));
}

bool is_there(const path& file) {
  std::error_code nothing;
  return std::filesystem::exists(file, nothing);
}

/// Lines of `name number`, behind one that says how many there are.
std::vector<std::string> read_names(const path& file) {
  const std::string name = printable_path(file);
  const Buffer<std::byte> bytes = detail::read_file(file);
  const std::string_view text = detail::as_text(bytes.span());
  detail::Lines lines(text);
  std::string_view line;
  PUMICE_EXPECTS(lines.next(line), name, ": is empty; its first line says how many names follow");
  const auto count = detail::parse_number<std::int64_t>(detail::next_word(line));
  PUMICE_EXPECTS(count && *count >= 0 && *count <= static_cast<std::int64_t>(text.size()), name,
                 ", line 1: says how many names follow, which a file of ", text.size(),
                 " bytes does not hold");
  std::vector<std::string> names(static_cast<std::size_t>(*count));
  std::vector<bool> seen(names.size());
  for (std::int64_t number = 2; lines.next(line); ++number) {
    const std::size_t end = line.find_last_not_of(" \t");
    if (end == std::string_view::npos) continue;
    line = line.substr(0, end + 1);
    const std::size_t cut = line.find_last_of(" \t");
    const auto id = detail::parse_number<std::int64_t>(
        line.substr(cut == std::string_view::npos ? 0 : cut + 1));
    PUMICE_EXPECTS(cut != std::string_view::npos && id && *id >= 0 && *id < *count &&
                       !seen[static_cast<std::size_t>(*id)],
                   name, ", line ", number, ": \"", detail::excerpt(line),
                   "\" where a name and a number below ", *count, " are needed, each once");
    seen[static_cast<std::size_t>(*id)] = true;
    names[static_cast<std::size_t>(*id)] = line.substr(0, line.find_last_not_of(" \t", cut) + 1);
  }
  const auto missing = std::ranges::find(seen, false);
  PUMICE_EXPECTS(missing == seen.end(), name, ": has no name for number ", missing - seen.begin(),
                 " of ", *count, "; it was cut off");
  return names;
}

/// Takes the names of `file`, where it is there, and their number for `count`.
void take_names(const path& file, const char* what, std::vector<std::string>& names,
                std::int64_t& count) {
  if (!is_there(file)) return;
  names = read_names(file);
  const auto named = static_cast<std::int64_t>(names.size());
  PUMICE_EXPECTS(count <= named, printable_path(file), ": names ", named, ' ', what,
                 ", and edges beside it have ", count);
  count = named;
}

TypedEdges read_openke(const path& folder, std::string_view part) {
  TypedEdges edges;
  for (const std::string_view name : kParts) {
    const path file = folder / (std::string(name) + "2id.txt");
    if (name != part && !is_there(file)) continue;
    TypedEdges more = read(file, read_openke_from);
    more.nodes = std::max(edges.nodes, more.nodes);
    more.relations = std::max(edges.relations, more.relations);
    if (name == part) {
      edges = std::move(more);
    } else {
      edges.nodes = more.nodes;
      edges.relations = more.relations;
    }
  }
  take_names(folder / "entity2id.txt", "nodes", edges.node_names, edges.nodes);
  take_names(folder / "relation2id.txt", "relations", edges.relation_names, edges.relations);
  return edges;
}

struct Ending {
  std::string_view ending;
  Reader reader;
};
constexpr std::array<Ending, 4> kEndings{{{".nt", read_triples_from},
                                          {".nt.gz", read_triples_from},
                                          {".csv", read_numbered_triples_from},
                                          {".csv.gz", read_numbered_triples_from}}};

}   // namespace

TypedEdges read_typed_edges(const std::filesystem::path& folder, std::string_view part) {
  PUMICE_EXPECTS(std::ranges::find(kParts, part) != kParts.end(), "part = ", detail::excerpt(part),
                 ": give train, valid or test");
  std::error_code failure;
  const std::string name = printable_path(folder);
  PUMICE_EXPECTS(std::filesystem::is_directory(folder, failure), name,
                 ": there is no such folder; give one with ", kTrain,
                 ", or with one file .nt, .nt.gz, .csv or .csv.gz");
  if (is_there(folder / kTrain)) return read_openke(folder, part);
  PUMICE_EXPECTS(part == "train", name, ": has no ", kTrain, ", beside which ", part,
                 "2id.txt would be; other folders have one part, train");
  std::vector<std::pair<path, Reader>> found;
  for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string file = entry->path().filename().string();
    for (const Ending& known : kEndings) {
      if (file.ends_with(known.ending)) found.emplace_back(entry->path(), known.reader);
    }
  }
  PUMICE_EXPECTS(!failure, name, ": cannot be read: ", failure.message());
  PUMICE_EXPECTS(found.size() == 1, name, ": holds ", found.size(),
                 " files .nt, .nt.gz, .csv or .csv.gz and no ", kTrain,
                 "; edges are read from one such file");
  return read(found[0].first, found[0].second);
}

}   // namespace pumice
