// Fuzz target of the reader of numbered triples, plain and compressed.
#include <pumice/graphs/typed_edges.hpp>

#include "fuzz/edges.hpp"
#include "support/gzipped.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_edges(read_numbered_triples_from(bytes, "fuzzed.csv")); });
}

std::vector<std::string> seeds() {
  const std::string text = "0, 1, 2\n2,0,0\n\n11 , 65534 , 2147483646\r\n";
  return {text, "", test::gzipped(text)};
}

}   // namespace pumice::fuzz
