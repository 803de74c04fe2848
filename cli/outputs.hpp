// What the program writes: one table of formats and their endings, and whether a place can take a
// result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace pumice::cli {

enum class Format : std::uint8_t { tensors, sweep, picture, page, labels, table, bundle, plans };

/// ".safetensors", ".ply", ".png", ".html", ".label", ".csv", ".pumice bundle"'s suffix,
/// ".json".
std::string_view ending_of(Format format);

/// A file to be written, and the option that names it; an empty path stands for one not given.
struct Output {
  const char* option;
  std::filesystem::path path;
  Format format;
};

/// UserError, before any work, when a file to be written is one that is read, or is to be written
/// twice, or is where the program prints, or lies where nothing can be written, or is no file, or
/// has not the ending of its format (upper or lower case). Empty inputs stand for options not
/// given.
void check_outputs(const std::vector<std::filesystem::path>& inputs,
                   const std::vector<Output>& outputs);

/// The same for a folder that takes one file of this format for each scan of `inputs`, which are
/// folders too: UserError where it is one of those, no folder, or nothing can be made in it. It
/// need not be there yet; what it lies in must be.
void check_output_folder(const std::vector<std::filesystem::path>& inputs, const Output& output);

}   // namespace pumice::cli
