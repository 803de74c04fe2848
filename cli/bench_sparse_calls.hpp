// What `pumice bench sparse` measures of a matrix or a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pumice/core/device.hpp>

#include "edges_input.hpp"
#include "measure.hpp"

namespace pumice::cli {

struct SparseBenchOptions {
  std::vector<std::int64_t> channels{32, 128, 512};
  std::vector<std::string> precisions{"f32"};
  int repeat = 5;
};

struct SparseFigure {
  std::string call;
  std::string precision{};     // empty, as channels are 0, where the pattern alone is worked on
  std::int64_t channels = 0;   // of what comes in and of what comes out
  Spread ms{};
  double gathered_bytes = 0;   // rows of features that are read, one or two for each entry
  double copy_ms = 0;          // what a copy of as many bytes takes

  double gathered_gb_per_s() const { return ms.median > 0 ? gathered_bytes / ms.median / 1e6 : 0; }
};

/// Patterns and their transposes, then for each precision and each number of channels spmm, sddmm
/// and, where edges have types, rgms, with gradients. Runs where `stream` does, and waits for it.
std::vector<SparseFigure> measure_sparse(const EdgesInput& edges, const SparseBenchOptions& options,
                                         StreamView stream);

}   // namespace pumice::cli
