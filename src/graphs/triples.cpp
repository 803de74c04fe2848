// N-Triples, whose nodes have names, and lines of three numbers.
#include <optional>
#include <string>
#include <unordered_map>

#include <pumice/core/error.hpp>

#include "graphs/edge_list.hpp"
#include "graphs/gzip.hpp"
#include "points/text.hpp"

namespace pumice {
namespace {

using detail::excerpt;
using detail::kMostNodes;
using detail::kMostRelations;

/// The text of a file, inflated where it is compressed.
class FileText {
 public:
  FileText(std::span<const std::byte> bytes, std::string_view name)
      : inflated_(detail::inflate_gzip(bytes, name)),
        text_(detail::as_text(inflated_ ? std::span<const std::byte>(inflated_->span()) : bytes)) {}
  std::string_view text() const { return text_; }

 private:
  std::optional<Buffer<std::byte>> inflated_;
  std::string_view text_;
};

std::string place(std::string_view name, std::int64_t line) {
  return std::string(name) + ", line " + std::to_string(line);
}

/// Names in the order in which they first appear.
class Numbering {
 public:
  std::int64_t number_of(std::string_view term) {
    const auto [found, is_new] =
        numbers_.try_emplace(term, static_cast<std::int64_t>(names_.size()));
    if (is_new) names_.emplace_back(term);
    return found->second;
  }
  std::vector<std::string> take() { return std::move(names_); }
  std::int64_t size() const { return static_cast<std::int64_t>(names_.size()); }

 private:
  std::unordered_map<std::string_view, std::int64_t> numbers_;   // of the text, which outlives this
  std::vector<std::string> names_;
};

constexpr std::string_view kBlank = " \t";

/// Cuts `<…>` off; empty where there is none.
std::string_view take_iri(std::string_view& rest) {
  if (!rest.starts_with('<')) return {};
  const std::size_t end = rest.find('>');
  if (end == std::string_view::npos) return {};
  const std::string_view term = rest.substr(0, end + 1);
  rest.remove_prefix(end + 1);
  return term;
}

/// A word up to a blank: `_:b12`, and what stands behind a literal, as `@en`.
std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlank));
  rest.remove_prefix(word.size());
  return word;
}

/// `"…"`, `"…"@en` or `"…"^^<…>`; empty where there is none.
std::string_view take_literal(std::string_view& rest) {
  const std::string_view all = rest;
  if (!rest.starts_with('"')) return {};
  std::size_t end = 1;
  while (end < rest.size() && rest[end] != '"')
    end += rest[end] == '\\' ? std::size_t{2} : std::size_t{1};
  if (end >= rest.size()) return {};
  rest.remove_prefix(end + 1);
  if (rest.starts_with('@')) {
    take_word(rest);
  } else if (rest.starts_with("^^")) {
    rest.remove_prefix(2);
    if (take_iri(rest).empty()) return {};
  }
  return all.substr(0, all.size() - rest.size());
}

std::string_view take_node(std::string_view& rest) {
  return rest.starts_with("_:") ? take_word(rest) : take_iri(rest);
}

void skip_blank(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
}

struct Triple {
  std::string_view subject, predicate, object;
};

/// Nothing where the line is blank or a comment.
std::optional<Triple> parse_triple(std::string_view line, const std::string& here) {
  std::string_view rest = line;
  skip_blank(rest);
  if (rest.empty() || rest.starts_with('#')) return std::nullopt;
  Triple triple;
  triple.subject = take_node(rest);
  skip_blank(rest);
  triple.predicate = triple.subject.empty() ? std::string_view() : take_iri(rest);
  skip_blank(rest);
  if (!triple.predicate.empty())
    triple.object = rest.starts_with('"') ? take_literal(rest) : take_node(rest);
  skip_blank(rest);
  const bool stops = !triple.object.empty() && rest.starts_with('.');
  if (stops) rest.remove_prefix(1);
  skip_blank(rest);
  PUMICE_EXPECTS(stops && (rest.empty() || rest.starts_with('#')), here, ": \"", excerpt(line),
                 "\" is no triple of N-Triples; subject, predicate, object and a full stop are "
                 "needed, as in <a> <b> \"c\" .");
  return triple;
}

std::int64_t parse_number_below(std::string_view word, std::int64_t limit, const std::string& here,
                                const char* what) {
  const auto number = detail::parse_number<std::int64_t>(word);
  PUMICE_EXPECTS(number && *number >= 0 && *number < limit, here, ": ", what, " \"", excerpt(word),
                 "\": a whole number from 0 to ", limit - 1, " is needed");
  return *number;
}

struct EdgeWords {
  std::string_view source, target, relation;
};

void add_numbers(const EdgeWords& words, const std::string& here, detail::EdgeList& list) {
  const std::int64_t source = parse_number_below(words.source, kMostNodes, here, "source");
  const std::int64_t target = parse_number_below(words.target, kMostNodes, here, "target");
  list.add(source, target, parse_number_below(words.relation, kMostRelations, here, "relation"));
}

std::vector<std::string_view> cut_at_commas(std::string_view line) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = line.find(',');
    std::string_view part = line.substr(0, end);
    parts.push_back(detail::next_word(part));
    if (!detail::next_word(part).empty()) return {};   // two words between two commas
    if (end == std::string_view::npos) return parts;
    line.remove_prefix(end + 1);
  }
}

bool is_blank(std::string_view line) {
  return detail::next_word(line).empty();
}

}   // namespace

TypedEdges read_triples_from(std::span<const std::byte> bytes, std::string_view name) {
  const FileText file(bytes, name);
  detail::Lines lines(file.text());
  Numbering nodes, relations;
  detail::EdgeList list;
  std::string_view line;
  for (std::int64_t number = 1; lines.next(line); ++number) {
    const std::string here = place(name, number);
    const auto triple = parse_triple(line, here);
    if (!triple) continue;
    const std::int64_t source = nodes.number_of(triple->subject);
    list.add(source, nodes.number_of(triple->object), relations.number_of(triple->predicate));
    PUMICE_EXPECTS(nodes.size() <= kMostNodes && relations.size() <= kMostRelations, here, ": ",
                   nodes.size(), " nodes and ", relations.size(), " relations up to here; at most ",
                   kMostNodes, " and ", kMostRelations, " are read");
  }
  TypedEdges edges = list.take();
  edges.nodes = nodes.size();
  edges.relations = relations.size();
  edges.node_names = nodes.take();
  edges.relation_names = relations.take();
  return edges;
}

TypedEdges read_numbered_triples_from(std::span<const std::byte> bytes, std::string_view name) {
  const FileText file(bytes, name);
  detail::Lines lines(file.text());
  detail::EdgeList list;
  std::string_view line;
  for (std::int64_t number = 1; lines.next(line); ++number) {
    if (is_blank(line)) continue;
    const std::string here = place(name, number);
    const std::vector<std::string_view> parts = cut_at_commas(line);
    PUMICE_EXPECTS(parts.size() == 3, here, ": \"", excerpt(line),
                   "\" where three whole numbers are needed: source, relation, target");
    add_numbers({parts[0], parts[2], parts[1]}, here, list);
  }
  TypedEdges edges = list.take();
  detail::count_numbers(edges);
  return edges;
}

TypedEdges read_openke_from(std::span<const std::byte> bytes, std::string_view name) {
  const FileText file(bytes, name);
  detail::Lines lines(file.text());
  std::string_view line;
  PUMICE_EXPECTS(lines.next(line), name, ": is empty; its first line says how many edges follow");
  const std::int64_t announced =
      parse_number_below(line.substr(0, line.find_last_not_of(" \t") + 1), kMostNodes,
                         place(name, 1), "number of edges");
  detail::EdgeList list;
  for (std::int64_t number = 2; lines.next(line); ++number) {
    if (is_blank(line)) continue;
    const std::string here = place(name, number);
    const std::vector<std::string_view> parts = detail::words(line);
    PUMICE_EXPECTS(parts.size() == 3, here, ": \"", excerpt(line),
                   "\" where three whole numbers are needed: source, target, relation");
    add_numbers({parts[0], parts[1], parts[2]}, here, list);
  }
  PUMICE_EXPECTS(list.size() == announced, name, ": its first line announces ", announced,
                 " edges, and ", list.size(), " follow; it was cut off, or correct that number");
  TypedEdges edges = list.take();
  detail::count_numbers(edges);
  return edges;
}

}   // namespace pumice
