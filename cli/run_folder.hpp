// `pumice run NETWORK FOLDER`: scan after scan, in the memory of one.
#pragma once

#include "run_arguments.hpp"

namespace pumice::cli {

/// Whether the scans of a run are a folder; UserError for a folder among files.
bool names_a_folder(const RunArguments& arguments);

/// Runs the network on each scan of the folder. A scan that cannot be read or run is reported and
/// the rest go on; UserError at the end says how many there were.
void run_folder(const RunArguments& arguments);

}   // namespace pumice::cli
