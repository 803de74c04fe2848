// What NVRTC makes of a source before the assembler, and whether its kernels wait for the grid
// before them.
#pragma once

#include <string>
#include <string_view>

#include "jit/compile.hpp"

namespace pumice::test {

/// PTX for `architecture`, "compute_90a", with the options of `source`.
std::string ptx_of(const jit::Source& source, std::string_view architecture);

struct EntryCount {
  int entries = 0;    // kernels
  int triggers = 0;   // places at which they let the next grid in
};

/// A line without the spaces around it.
std::string_view trimmed(std::string_view line);

/// Whether an instruction touches no memory but the kernel's parameters and does not branch. What
/// is not known to be one is none.
bool only_calculates(std::string_view instruction);

/// What is wrong with how the kernels of `ptx` wait; empty where nothing is. In each, the wait
/// stands in the straight line of instructions that every thread begins with, under no condition,
/// and before it is nothing but arithmetic on parameters. Nothing is read as what no other kernel
/// writes.
std::string complaint_about_waiting(std::string_view ptx, EntryCount* count = nullptr);

}   // namespace pumice::test
