// Fuzz target of the reader of OpenKE's edges.
#include <pumice/graphs/typed_edges.hpp>

#include "fuzz/edges.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] { check_edges(read_openke_from(bytes, "train2id.txt")); });
}

std::vector<std::string> seeds() {
  return {"2\n0 1 0\n2 3 1\n", "0\n", "1 \n7\t8 9\r\n"};
}

}   // namespace pumice::fuzz
