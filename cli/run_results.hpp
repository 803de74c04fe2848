// What a run leaves behind: features, labels, a picture and a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agreement.hpp"
#include "run_arguments.hpp"
#include "run_batch.hpp"
#include "run_network.hpp"

namespace pumice::cli {

/// What a network says of every point of a batch, scan after scan, beside what its labels say.
struct Answer {
  std::vector<std::int32_t> classes;   // -1 in no voxel; empty where rows are not the voxels
  std::vector<std::int32_t> truth;     // -1 where no class stands for the label; or empty
  std::optional<Agreement> agreement;
};

Answer answer_of(const Batch& batch, const Forward& forward, const nn::ModelCard& card);

/// Writes what is asked for to `where`, all of it made before any is written; picture and page are
/// of the first scan, called `name`, whatever else is in the batch.
void write_results(const RunArguments& arguments, const RunResults& where, const std::string& name,
                   const Batch& batch, const Forward& forward, const Answer& answer,
                   const nn::ModelCard& card);

}   // namespace pumice::cli
