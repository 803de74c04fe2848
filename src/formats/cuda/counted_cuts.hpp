// Cuts whose memory holds just what there is: everything is counted first, for all maps, the host
// reads the counts, and then entries and pairs are written.
//
//   search, order, plan ──► counts ──► host ──► memory ──► entries, pairs
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "coords/cuda/count_reader.hpp"
#include "formats/cuda/cut_maps.hpp"

namespace pumice::cuda {

class CutBatchBuilder;

/// What the host has read.
struct KnownCounts {
  std::span<const std::int64_t> words;   // as the reader brought them
  /// The rows of a set whose count the device had, as the host knows them now.
  std::function<RowCountRef(const RowCountRef&)> rows;
};

class CountedCuts {
 public:
  /// Enqueues all that counts. `requests` say nothing of room, and their sets may have room for
  /// more rows than they have. `runner` outlives this.
  CountedCuts(jit::KernelRunner& runner, std::span<const CutRequest> requests, CountReader& reader);
  CountedCuts(const CountedCuts&) = delete;
  CountedCuts& operator=(const CountedCuts&) = delete;
  ~CountedCuts();

  /// Whether no count is poison, and kernels have numbers for all entries.
  bool fit(std::span<const std::int64_t> words) const;
  /// Enqueues the rest, once; cuts in the order of the requests.
  std::vector<CutMap> write(const KnownCounts& known);

 private:
  std::vector<std::unique_ptr<CutBatchBuilder>> batches_;
};

}   // namespace pumice::cuda
