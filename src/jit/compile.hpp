// From the text of a kernel to a binary for one architecture. Needs NVRTC, but neither a GPU nor
// its driver.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jit/sha256.hpp"

namespace pumice::jit {

/// A few lines of C++ that include headers of the device tree (#include <pumice/...>) and
/// instantiate what is in them as extern "C" kernels.
struct Source {
  std::string name;   // for messages
  std::string text;
  std::vector<std::string> options{};   // of NVRTC, beside the common ones
  /// All threads of its kernels wait for the kernel before them (wait_for_previous), as those of
  /// device/ do: only such may be launched before that one has ended (dependent_launch.hpp).
  bool waits = true;
  /// Its kernels write features, sums of them and gradients, and never coordinates, maps, counts or
  /// packed weights: those may be read early by the kernel after them (may_read_ahead).
  bool writes_only_features = false;
};

/// What the assembler says of one kernel.
struct KernelReport {
  std::string name;
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int shared_bytes = 0;   // static
};

struct CompileResult {
  std::vector<std::byte> cubin;
  std::string log;   // of the compiler: warnings, and what the reports are read from
  std::vector<KernelReport> kernels;
  double milliseconds = 0;
};

/// `architecture` is "sm_90a". Throws Error with the source's name and the first lines of what the
/// compiler says; UserError where NVRTC is not there or does not know the architecture.
CompileResult compile(const Source& source, std::string_view architecture);

/// What is wrong with a kernel that did compile: registers spilled to memory, or wgmma instructions
/// that wait for each other. Empty where nothing is.
std::string complaint_about(const CompileResult& compiled);

/// All options a source is compiled with.
std::vector<std::string> compile_options(const Source& source, std::string_view architecture);

/// What a binary is made from: text, options, architecture and every header of the device tree. The
/// name and the compiler's version are not part of it.
Digest source_digest(const Source& source, std::string_view architecture);

/// Of every header of the device tree: what all kernels of one build of Pumice have in common.
const Digest& device_tree_digest();

std::vector<KernelReport> parse_reports(std::string_view log);

}   // namespace pumice::jit
