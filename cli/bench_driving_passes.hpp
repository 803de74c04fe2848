// What `pumice bench driving` measures of one workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pumice/core/device.hpp>

#include "driving_input.hpp"

namespace pumice::cli {

struct DrivingPasses {
  DrivingSize size = DrivingSize::full;
  int rounds = 6;          // at least 1; in each, the ways to run take turns
  int repeat = 10;         // passes of a way in a round, at least 1
  bool ablation = false;   // on a device: graphs with one thing switched off, too
};

/// Milliseconds of passes that each begin where nothing is left to do and are waited for.
struct PassTimes {
  std::vector<double> whole;    // until the result is there
  std::vector<double> host;     // until all is enqueued
  std::vector<double> device;   // between events around it; empty on the CPU
};

/// One way to run one workload: the medians of the rounds.
struct DrivingFigure {
  std::string precision;
  std::string way;
  PassTimes rounds{};
  std::int64_t peak_bytes = 0;
};

/// "layers" makes sets and maps anew in every pass, "layers, maps kept" keeps those of the first,
/// and "graph", on a device, is one CUDA graph with sets and maps; with `ablation` more of them
/// follow, each named by what it is without. Coordinates and features are where the network is.
/// UserError for a precision that the device of `stream` does not have.
std::vector<DrivingFigure> measure_workload(const DrivingWorkload& work, const DrivingInput& input,
                                            const std::string& precision,
                                            const DrivingPasses& passes, StreamView stream);

}   // namespace pumice::cli
