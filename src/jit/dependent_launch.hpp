// Programmatic dependent launches: in a recorded graph a kernel may begin while the one before it
// still runs, and waits for it on the device. On unless PUMICE_DEPENDENT_LAUNCH says otherwise;
// docs/decisions/0017-dependent-launches.md has the proof that results are the same.
#pragma once

#include <string_view>

#include <pumice/core/device.hpp>

#include "jit/compile.hpp"

namespace pumice::jit {

/// "off", or "on" or nothing. UserError, in words of the environment variable, for all else.
bool parse_dependent_launches(std::string_view text);
/// What PUMICE_DEPENDENT_LAUNCH says.
bool dependent_launches();

/// Whether kernels of `source` wait by themselves when they are compiled for `architecture`, and so
/// may be launched early: since sm_90 (device/pumice/platform_cuda.h).
bool waits_by_itself(const Source& source, std::string_view architecture);

/// Whether a kernel launched next on `stream`, by this thread, may read maps, counts and packed
/// weights before it waits: all that wrote those has ended when it begins, since the kernel that
/// may still run then is one of ours that writes only features.
bool may_read_ahead(StreamView stream);

namespace detail {

/// Whether what was recorded last on `stream` is a kernel that `note_recorded` was told of, and
/// nothing else. False where nothing is recorded: of other streams nobody says what stands on them,
/// and a framework puts kernels of its own between ours.
bool follows_recorded(StreamView stream);
/// To be called right after a kernel of ours was launched on `stream`, which writes only features
/// or more than that.
void note_recorded(StreamView stream, bool writes_only_features);

}   // namespace detail

}   // namespace pumice::jit
