// The checks that a result can be written, made before it is.
#include "outputs.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>

#include "core/printable.hpp"
#include "jit/bundle_set.hpp"

namespace pumice::cli {
namespace {

namespace fs = std::filesystem;

struct FormatRow {
  Format format;
  std::string_view ending;   // in small letters
  const char* what;
};
constexpr std::array kFormats{FormatRow{Format::tensors, ".safetensors", "a file of tensors"},
                              FormatRow{Format::sweep, ".ply", "a sweep"},
                              FormatRow{Format::picture, ".png", "a picture"},
                              FormatRow{Format::page, ".html", "a page"},
                              FormatRow{Format::labels, ".label", "a file of labels"},
                              FormatRow{Format::table, ".csv", "a table"},
                              FormatRow{Format::bundle, jit::kBundleSuffix, "a bundle of kernels"},
                              FormatRow{Format::plans, ".json", "a table of plans"}};

const FormatRow& row_of(Format format) {
  const auto* row = std::ranges::find(kFormats, format, &FormatRow::format);
  PUMICE_ENSURES(row != kFormats.end(), "format ", static_cast<int>(format));
  return *row;
}

bool ends_in(const std::string& name, std::string_view ending) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  };
  return name.size() >= ending.size() &&
         std::equal(name.end() - static_cast<std::ptrdiff_t>(ending.size()), name.end(),
                    ending.begin(), same);
}

/// What is not there yet is compared by name.
bool same_place(const fs::path& a, const fs::path& b) {
  std::error_code absent;
  return fs::equivalent(a, b, absent) ||
         fs::weakly_canonical(a, absent) == fs::weakly_canonical(b, absent);
}

void expect_writable(const fs::path& folder, const fs::path& named) {
  PUMICE_EXPECTS(::access(folder.c_str(), W_OK | X_OK) == 0, printable_path(named),
                 ": cannot be written (", std::strerror(errno),
                 "); choose a folder that exists and is yours");
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}   // namespace

std::string_view ending_of(Format format) {
  return row_of(format).ending;
}

void check_outputs(const std::vector<fs::path>& inputs, const std::vector<Output>& outputs) {
  // What could be lost comes first: a file that is read, a result under another.
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    const fs::path& path = output->path;
    if (path.empty()) continue;
    for (const fs::path& input : inputs) {
      PUMICE_EXPECTS(input.empty() || !same_place(path, input), printable_path(path),
                     " would be read and written over; give the result another name");
    }
    for (auto other = outputs.begin(); other != output; ++other) {
      PUMICE_EXPECTS(other->path.empty() || !same_place(path, other->path), printable_path(path),
                     " would be written twice; give each result its own name");
    }
  }
  for (const auto& [option, path, format] : outputs) {
    if (path.empty()) continue;
    expect_writable(folder_of(path), path);
    PUMICE_EXPECTS(!fs::is_directory(path), printable_path(path),
                   ": is a folder; give the name of a file");
    AtomicFile::expect_replaceable(path);
    for (const char* stream : {"/dev/stdout", "/dev/stderr"}) {
      PUMICE_EXPECTS(!same_place(path, stream), printable_path(path),
                     " is where the program prints; give the result another name");
    }
    const FormatRow& row = row_of(format);
    PUMICE_EXPECTS(ends_in(path.string(), row.ending), option, ' ', printable_path(path), ": ",
                   row.what, " is written as ", row.ending, "; give a name that ends in ",
                   row.ending);
  }
}

void check_output_folder(const std::vector<fs::path>& inputs, const Output& output) {
  const fs::path& path = output.path;
  if (path.empty()) return;
  for (const fs::path& input : inputs) {
    PUMICE_EXPECTS(input.empty() || !same_place(path, input), output.option, ' ',
                   printable_path(path),
                   ": results would lie among the files that are read; give another folder");
  }
  const bool is_folder = fs::is_directory(path);
  PUMICE_EXPECTS(is_folder || !fs::exists(path), output.option, ' ', printable_path(path),
                 ": is a file; a folder of scans has results of its own names, so give a folder");
  const FormatRow& row = row_of(output.format);
  PUMICE_EXPECTS(is_folder || !ends_in(path.string(), row.ending), output.option, ' ',
                 printable_path(path), ": is the name of ", row.what,
                 "; a folder of scans has one for each scan, so give a folder");
  // A folder without a last name, as in results/, is the one before it.
  const fs::path bare = path.has_filename() ? path : path.parent_path();
  expect_writable(fs::is_directory(path) ? path : folder_of(bare), path);
}

}   // namespace pumice::cli
