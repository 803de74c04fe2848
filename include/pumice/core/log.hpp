// What Pumice says about its own doings, on standard error, when asked through PUMICE_LOG.
#pragma once

#include <string>

namespace pumice {

enum class LogTopic : unsigned char { plan, map };

/// Whether PUMICE_LOG names `topic` ("plan", "plan,map" or "all").
bool logging(LogTopic topic);
void log(LogTopic topic, const std::string& message);

}   // namespace pumice
