// Every environment variable Pumice reads.
#pragma once

#include <string>

namespace pumice::environment {

/// PUMICE_LOG: topics to log, "plan,map", or "all"; empty when unset.
const std::string& log_topics();

}   // namespace pumice::environment
