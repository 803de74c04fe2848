// Fuzz target of the Matrix Market reader.
#include <pumice/graphs/matrix_market.hpp>

#include "fuzz/target.hpp"
#include "pumice/graphs/csr.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] {
    const MatrixLines lines = read_matrix_market_from(bytes, "fuzzed.mtx");
    if (lines.rows > 100'000 || lines.columns > 100'000) return;   // a pattern has a bound a row
    const MatrixEntries entries = entries_of(lines);
    const Csr csr(lines.rows, lines.columns, entries.row, entries.column);
    try {
      check_pattern(csr.view(), "fuzzed.mtx");
    } catch (const UserError&) {
      found("a matrix whose entries lead nowhere");
    }
  });
}

std::vector<std::string> seeds() {
  return {
      "%%MatrixMarket matrix coordinate real general\n% made\n3 4 3\n1 4 2.5\n3 1 -1e-3\n2 2 7\n",
      "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 3\n3 1\n",
      "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n",
      "%%MatrixMarket matrix coordinate real general\n0 0 0\n"};
}

}   // namespace pumice::fuzz
