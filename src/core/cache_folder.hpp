// Where what Pumice may make again is kept for a user: compiled kernels, tuned plans.
#pragma once

#include <filesystem>
#include <string>

namespace pumice {

/// PUMICE_CACHE, else $XDG_CACHE_HOME/pumice, else ~/.cache/pumice; empty where none of them is
/// set.
std::filesystem::path cache_folder_from_environment();

/// Why nothing can be kept in `folder` as it is; empty where it can, or is not there yet. Folders
/// that everyone may write are refused: links could be planted there that lead a file elsewhere.
std::string problem_of_cache_folder(const std::filesystem::path& folder);

/// Made for the user alone, unless it is there. Throws where it cannot be, or has a problem.
void make_cache_folder(const std::filesystem::path& folder);

}   // namespace pumice
