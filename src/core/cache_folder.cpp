// The folder of caches: private to the user, and refused where others could plant files.
#include "core/cache_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include <pumice/core/error.hpp>

#include "core/environment.hpp"
#include "core/printable.hpp"

namespace pumice {

namespace fs = std::filesystem;

fs::path cache_folder_from_environment() {
  if (!environment::cache_folder().empty()) return environment::cache_folder();
  if (!environment::xdg_cache_home().empty())
    return fs::path(environment::xdg_cache_home()) / "pumice";
  if (!environment::home().empty()) return fs::path(environment::home()) / ".cache" / "pumice";
  return {};
}

std::string problem_of_cache_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) {
    if (!fs::is_symlink(fs::symlink_status(folder, error))) return {};
    return detail::concatenate("it is a link to ", printable_path(fs::read_symlink(folder, error)),
                               ", which is not there");
  }
  if (!fs::is_directory(status)) return "it is no folder";
  const bool open_to_all = (status.permissions() & fs::perms::others_write) != fs::perms::none;
  return open_to_all ? "everyone may write there" : "";
}

void make_cache_folder(const fs::path& folder) {
  if (!folder.parent_path().empty()) fs::create_directories(folder.parent_path());
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw fs::filesystem_error("mkdir", folder, std::error_code(errno, std::generic_category()));
  const std::string problem = problem_of_cache_folder(folder);
  PUMICE_EXPECTS(problem.empty(), problem);
}

}   // namespace pumice
