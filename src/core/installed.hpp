// Where data that is installed with Pumice lies: kernels compiled ahead, trained weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pumice {

/// The folders in which data of `kind` may lie ("kernels", "models"), whether they exist or not,
/// found from the file that holds Pumice: its library, or the program or Python extension that it
/// is linked into. Empty where the system does not say which file that is.
///
///   pumice/<kind> beside it        of a Python extension
///   ../pumice/<kind>               of a program in a Python package
///   ../share/pumice/<kind>         of a program, or of a library in lib
///   ../../share/pumice/<kind>      of a library in lib/<architecture>
std::vector<std::filesystem::path> installed_places(const std::string& kind);

}   // namespace pumice
