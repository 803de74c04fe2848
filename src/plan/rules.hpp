// What the heuristic, the explanation and the space of candidates know alike.
#pragma once

#include <pumice/formats/cut_arguments.h>
#include <pumice/plan/choose.hpp>

namespace pumice {

/// Parts of the offsets: as many as the maps of a device can have, and the same on the CPU.
inline constexpr int kMostSplits = kMaxSplits;

struct Rule {
  Dataflow dataflow;
  bool (*applies)(const ConvolutionProblem&);
  const char* why;
};

/// Of a forward pass or an input gradient.
const Rule& first_that_applies(const ConvolutionProblem& problem, const Target& target);

/// Whether a device adds products up in memory and finishes them afterwards: of rows that meet
/// themselves every output has one product.
bool adds_in_memory(Dataflow dataflow, const ConvolutionProblem& problem);

/// Outputs of a tile on the CPU.
std::int64_t cpu_tile_rows(const ConvolutionProblem& problem);

}   // namespace pumice
