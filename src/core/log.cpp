// The log: one logger on standard error, topics chosen by PUMICE_LOG.
#include <pumice/core/log.hpp>

#include <array>
#include <memory>
#include <string_view>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/environment.hpp"
#include "core/printable.hpp"

namespace pumice {
namespace {

constexpr std::array<std::string_view, 3> kTopics{"plan", "map", "kernel"};

/// Bit mask of the topics named in a comma-separated list; unknown names are reported once.
unsigned parse_topics(std::string_view list, spdlog::logger& logger) {
  unsigned mask = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    if (name == "all") mask = ~0u;
    unsigned bit = name == "all" || name.empty() ? ~0u : 0u;
    for (std::size_t i = 0; i < kTopics.size(); ++i) {
      if (name == kTopics[i]) bit = 1u << i;
    }
    if (bit == 0) {
      logger.warn("PUMICE_LOG names \"{}\": topics are plan, map, kernel, all", printable(name));
    } else if (!name.empty()) {
      mask |= bit;
    }
  }
  return mask;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>("pumice",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("[pumice %H:%M:%S.%e] %v");
    return made;
  }();
  return *instance;
}

unsigned topics() {
  static const unsigned mask = parse_topics(environment::log_topics(), logger());
  return mask;
}

}   // namespace

bool logging(LogTopic topic) {
  return (topics() >> static_cast<unsigned>(topic) & 1u) != 0;
}

void check_log_topics() {
  (void)topics();
}

void log(LogTopic topic, const std::string& message) {
  if (logging(topic)) {
    logger().info("{}: {}", kTopics[static_cast<std::size_t>(topic)],
                  printable_message(message, Newlines::kept));
  }
}

void warn(const std::string& message) noexcept {
  logger().warn("warning: {}", printable_message(message, Newlines::kept));
}

}   // namespace pumice
