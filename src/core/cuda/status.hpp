// What kernels report: one StatusRecord for each stream, and names for the places that report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pumice/shared/status.h>
#include <pumice/core/device.hpp>

namespace pumice::cuda {

/// A number that stands for `what` ("voxels", "blocks of level 2") in a record; the same number
/// for the same text.
int status_site(std::string_view what);

/// Where kernels on `stream` report, as the device addresses it. A graph captured on a stream
/// reports to that stream for ever.
StatusRecord* device_status(StreamView stream);

/// Raises what `stream` has reported, and clears it: UserError with site and numbers. The stream is
/// to be idle.
void raise_status(StreamView stream);

/// Whether `stream` has reported something. Does not wait.
bool has_status(StreamView stream);

/// The code of that record as it is when `stream` comes to it, to memory of the device. It may be
/// recorded: records stay where they are as long as the process lives.
void copy_status(StreamView stream, std::int32_t* to);

/// What `record` says, in a sentence.
std::string describe(const StatusRecord& record);

/// Before a stream of ours goes: its record serves the next. What nobody waited for is said on
/// standard error.
void forget_status(StreamView stream) noexcept;

}   // namespace pumice::cuda
