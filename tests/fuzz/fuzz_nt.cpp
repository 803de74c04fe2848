// Fuzz target of the reader of N-Triples, plain and compressed.
#include <pumice/graphs/typed_edges.hpp>

#include "fuzz/edges.hpp"
#include "support/gzipped.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] {
    const TypedEdges edges = read_triples_from(bytes, "fuzzed.nt");
    check_edges(edges);
    if (edges.nodes != static_cast<std::int64_t>(edges.node_names.size()) ||
        edges.relations != static_cast<std::int64_t>(edges.relation_names.size()))
      found("nodes without names");
  });
}

std::vector<std::string> seeds() {
  const std::string text =
      "<a> <p> <b> .\n# made\n\n_:x <q> \"a \\\"word\\\" .\"@en .\n<b> <p> "
      "\"1994\"^^<http://string> . # end\n";
  return {text, "", test::gzipped(text)};
}

}   // namespace pumice::fuzz
