// Where an installed CUDA toolkit keeps its libraries.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pumice::cuda {

/// Files of these names in CUDA_HOME or CUDA_PATH, /usr/local/cuda and the newest
/// /usr/local/cuda-*, in this order, whether they are there or not.
std::vector<std::string> toolkit_libraries(std::span<const std::string> names);

}   // namespace pumice::cuda
