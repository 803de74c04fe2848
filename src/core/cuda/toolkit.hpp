// What the libraries of a CUDA toolkit are called, and where an installed one keeps them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pumice::cuda {

/// "libnvrtc.so.13" and "libnvrtc.so.12" for "nvrtc": 13 first, but not where the driver serves
/// CUDA 12 and would not load what 13 makes.
std::vector<std::string> toolkit_names(std::string_view library);

/// Files of these names in CUDA_HOME or CUDA_PATH, /usr/local/cuda and the newest
/// /usr/local/cuda-*, in this order, whether they are there or not.
std::vector<std::string> toolkit_libraries(std::span<const std::string> names);

}   // namespace pumice::cuda
