// Lists of names and paths.
#include "core/cuda/toolkit.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "core/cuda/driver.hpp"
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

std::vector<std::string> toolkit_names(std::string_view library) {
  const std::string stem = "lib" + std::string(library) + ".so.";
  const int driver = driver_state().version;
  std::vector<std::string> names{stem + "13", stem + "12"};
  if (driver != 0 && driver < 13000) std::swap(names[0], names[1]);
  return names;
}

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
