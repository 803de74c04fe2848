// Runs a fuzz target without a fuzzer: the seeds, then seeded mutations of them.
//
//   pumice_fuzz_pcd_smoke [inputs]          5,000 unless said otherwise
//   pumice_fuzz_pcd_smoke --corpus FOLDER   writes the seeds, for libFuzzer to begin with
#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include <pumice/core/random.hpp>

#include "fuzz/target.hpp"

namespace pumice::fuzz {
namespace {

constexpr int kInputs = 5000;
constexpr std::int64_t kMostMutations = 6;

/// Numbers at which counts and sizes break.
constexpr std::array<std::uint64_t, 12> kEdges{0,
                                               1,
                                               0x7f,
                                               0xff,
                                               0x7fff,
                                               0xffff,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               0x100000000,
                                               0x7fffffffffffffff,
                                               0xffffffffffffffff};
constexpr std::array<std::string_view, 10> kWords{
    "-1", "0", "4294967296", "9223372036854775807", "1e400", "nan", "-inf", "\n", " ", "99999999"};

class Mutator {
 public:
  Mutator(std::vector<std::string> files, std::uint64_t seed)
      : files_(std::move(files)), random_(seed) {}

  std::string next() {
    std::string bytes = files_[below(files_.size())];
    for (std::int64_t i = random_.integer(1, kMostMutations); i > 0; --i)
      mutate(bytes);
    return bytes;
  }

 private:
  /// In [0, size), or 0 when that is empty.
  std::size_t below(std::size_t size) {
    if (size == 0) return 0;
    return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(size) - 1));
  }

  void mutate(std::string& bytes) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, 1 + below(32));
    switch (random_.integer(0, 8)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_.integer(0, 7)));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random_.bits());
        break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(at, length)); break;
      case 4: bytes.resize(at); break;
      case 5: write_edge(bytes, at); break;
      case 6: replace_word(bytes, at); break;
      case 7: bytes.insert(at, kWords[below(kWords.size())]); break;
      default: {
        const std::string& other = files_[below(files_.size())];
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }

  void write_edge(std::string& bytes, std::size_t at) {
    const std::uint64_t edge = kEdges[below(kEdges.size())];
    const std::size_t width = std::size_t{1} << random_.integer(0, 3);
    for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
      bytes[at + i] = static_cast<char>(edge >> (8 * i));
    }
  }

  /// Puts an awkward word where the next run of digits is.
  void replace_word(std::string& bytes, std::size_t at) {
    constexpr std::string_view kDigits = "0123456789";
    const std::size_t begin = bytes.find_first_of(kDigits, at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(bytes.find_first_not_of(kDigits, begin), bytes.size());
    bytes.replace(begin, end - begin, kWords[below(kWords.size())]);
  }

  std::vector<std::string> files_;
  Random random_;
};

bool run(const std::string& bytes) {
  return read_and_check(std::as_bytes(std::span(bytes)));
}

void write_corpus(const std::string& folder) {
  int number = 0;
  for (const std::string& bytes : seeds()) {
    const std::string path = folder + "/seed-" + std::to_string(number++);
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    if (!file) found(("cannot write " + path).c_str());
  }
}

int smoke(int inputs) {
  const std::vector<std::string> files = seeds();
  for (const std::string& bytes : files) {
    if (!run(bytes)) found("a seed that is refused");
  }
  Mutator mutator(files, /*seed=*/1);
  int accepted = 0;
  for (int i = 0; i < inputs; ++i)
    accepted += run(mutator.next()) ? 1 : 0;
  std::printf("%d inputs: %d accepted, %d refused\n", inputs, accepted, inputs - accepted);
  // Mutations that are all refused, or never, do not get to where the reader could break.
  return accepted > 0 && accepted < inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}

}   // namespace
}   // namespace pumice::fuzz

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--corpus") {
    pumice::fuzz::write_corpus(argv[2]);
    return EXIT_SUCCESS;
  }
  return pumice::fuzz::smoke(argc > 1 ? std::atoi(argv[1]) : pumice::fuzz::kInputs);
}
