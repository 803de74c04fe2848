// Programmatic dependent launches: in a recorded graph a kernel may begin while the one before it
// still runs, and waits for it on the device. Off unless PUMICE_DEPENDENT_LAUNCH says otherwise;
// docs/decisions/0017-dependent-launches.md has the proof that results are the same.
#pragma once

#include <string_view>

#include <pumice/core/device.hpp>

#include "jit/compile.hpp"

namespace pumice::jit {

/// When blocks of the next grid are let in. The numbers are what kernels are compiled with
/// (device/pumice/platform_cuda.h).
enum class DependentLaunch : int {
  off = 0,    // once this grid has ended and its writes are out
  wait = 1,   // once all blocks of this grid have ended
  once = 2,   // once all blocks have begun, and waited for the grid before
  end = 3,    // once all blocks are past their main loop; of kernels without one, have ended
};

/// UserError, in words of the environment variable, for what is none of them.
DependentLaunch parse_dependent_launch(std::string_view text);
/// What PUMICE_DEPENDENT_LAUNCH says.
DependentLaunch dependent_launch();

/// Whether kernels of `source` wait when they are compiled for `architecture` as `how` has it:
/// devices have it since sm_90.
bool waits(const Source& source, std::string_view architecture, DependentLaunch how);
/// `source`, with the option that makes its kernels wait where they do.
Source dependent_source(const Source& source, std::string_view architecture, DependentLaunch how);

namespace detail {

/// Whether what was recorded last on `stream` is a kernel that `note_recorded` was told of, and
/// nothing else. False where nothing is recorded: of other streams nobody says what stands on them,
/// and a framework puts kernels of its own between ours.
bool follows_recorded(StreamView stream);
/// To be called right after a kernel of ours was launched on `stream`.
void note_recorded(StreamView stream);

}   // namespace detail

}   // namespace pumice::jit
