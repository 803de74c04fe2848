// Goes through a folder once.
#include "scan_folder.hpp"

#include <algorithm>
#include <map>
#include <system_error>

#include <pumice/core/error.hpp>
#include <pumice/points/read.hpp>

#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {

namespace fs = std::filesystem;

FolderScans list_scans(const fs::path& folder) {
  FolderScans found;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;   // between being listed and being looked at, or a link to nothing
    if (entry->is_directory(gone)) {
      found.left_out.push_back(name + '/');
    } else if (entry->is_regular_file(gone) && !name.starts_with('.') && scan_stem(name)) {
      found.scans.push_back(name);
    } else {
      found.left_out.push_back(name);
    }
  }
  PUMICE_EXPECTS(!failure, printable_path(folder),
                 ": the folder cannot be read: ", failure.message());
  std::ranges::sort(found.scans);
  std::ranges::sort(found.left_out);
  return found;
}

std::string left_out_text(const std::vector<std::string>& left_out) {
  if (left_out.empty()) return {};
  constexpr std::size_t kNamed = 5;
  const auto folders =
      std::ranges::count_if(left_out, [](const std::string& name) { return name.ends_with('/'); });
  const auto files = std::ssize(left_out) - folders;
  std::string text;
  if (files > 0) text = counted(files, "file");
  if (folders > 0) text += (files > 0 ? " and " : "") + counted(folders, "sub-folder");
  text += " (";
  for (std::size_t i = 0; i < std::min(left_out.size(), kNamed); ++i)
    text += (i > 0 ? ", " : "") + printable(left_out[i]);
  return text + (left_out.size() > kNamed ? ", …)" : ")");
}

std::string result_stem(const std::string& scan) {
  const std::optional<std::string> stem = scan_stem(scan);
  PUMICE_ENSURES(stem.has_value(), scan, " does not end as scans do");
  return *stem;
}

void check_result_stems(const fs::path& folder, const std::vector<std::string>& scans) {
  std::map<std::string, std::string> seen;   // stem: scan
  for (const std::string& scan : scans) {
    const auto [other, is_new] = seen.emplace(result_stem(scan), scan);
    PUMICE_EXPECTS(is_new, printable_path(folder), ": results of ", printable(other->second),
                   " and ", printable(scan),
                   " would have the same name; keep one of them elsewhere");
  }
}

}   // namespace pumice::cli
