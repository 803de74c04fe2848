// Reads each environment variable once.
#include "core/environment.hpp"

#include <cstdlib>

namespace pumice::environment {
namespace {

std::string read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}   // namespace

const std::string& log_topics() {
  static const std::string value = read("PUMICE_LOG");
  return value;
}

}   // namespace pumice::environment
