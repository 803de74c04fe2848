// What Pumice says about its own doings, on standard error, when asked through PUMICE_LOG.
#pragma once

#include <string>

namespace pumice {

enum class LogTopic : unsigned char { plan, map, kernel };

/// Whether PUMICE_LOG names `topic` ("plan", "plan,kernel" or "all").
bool logging(LogTopic topic);
/// Warns of every name in PUMICE_LOG that is no topic, as the first question for one does too.
void check_log_topics();
void log(LogTopic topic, const std::string& message);
/// Says `message` whether asked or not: what went wrong where nothing can be thrown.
void warn(const std::string& message) noexcept;

}   // namespace pumice
