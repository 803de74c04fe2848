// The scans of a folder, and what else is in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pumice::cli {

/// For sentences: what scans end in.
inline constexpr const char* kScanFiles = ".bin, .pcd.bin, .pcd, .ply, .npy or .npz";

struct FolderScans {
  std::vector<std::string> scans;      // names of files that end as scans do, sorted byte by byte
  std::vector<std::string> left_out;   // other files, and sub-folders with a / behind; sorted
};

/// Sub-folders are not gone into, and files whose names begin with a dot are left out, whatever
/// they end in: some systems keep notes on a file in those. UserError for a folder that cannot be
/// read.
FolderScans list_scans(const std::filesystem::path& folder);

/// "2 files and 1 sub-folder (notes.txt, poses.txt, old/)", at most five names; empty for none.
std::string left_out_text(const std::vector<std::string>& left_out);

/// How results of a scan are called, its ending taken off: "000000" of "000000.bin".
std::string result_stem(const std::string& scan);

/// UserError where two scans of a folder would have the same name for their results, as a.bin and
/// a.ply.
void check_result_stems(const std::filesystem::path& folder, const std::vector<std::string>& scans);

}   // namespace pumice::cli
