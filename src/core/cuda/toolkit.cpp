// A list of paths.
#include "core/cuda/toolkit.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/environment.hpp"

namespace pumice::cuda {
namespace {

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  if (!environment::cuda_home().empty()) folders.push_back(environment::cuda_home());
  folders.emplace_back("/usr/local/cuda");
  std::vector<std::string> versions;
  std::error_code ignored;   // no such folder: nothing to look through
  for (std::filesystem::directory_iterator entry("/usr/local", ignored), end; entry != end;
       entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("cuda-"))
      versions.push_back(entry->path().string());
  }
  std::sort(versions.begin(), versions.end(), std::greater<>());
  folders.insert(folders.end(), versions.begin(), versions.end());
  return folders;
}

}   // namespace

std::vector<std::string> toolkit_libraries(std::span<const std::string> names) {
  std::vector<std::string> files;
  for (const std::string& folder : toolkit_folders()) {
    for (const char* libraries :
         {"/lib64/", "/targets/x86_64-linux/lib/", "/targets/sbsa-linux/lib/"}) {
      for (const std::string& name : names)
        files.push_back(folder + libraries + name);
    }
  }
  return files;
}

}   // namespace pumice::cuda
