// Reads each environment variable once.
#include "core/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <system_error>

#include <pumice/core/error.hpp>

namespace pumice::environment {
namespace {

std::string read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Whether it is 1; 0, empty or unset it is not.
bool read_switch(const char* name) {
  const std::string value = read(name);
  PUMICE_EXPECTS(value.empty() || value == "0" || value == "1", name, " = \"", value,
                 "\": it is 0 or 1");
  return value == "1";
}

std::string read(const char* name, const char* otherwise) {
  const std::string value = read(name);
  return value.empty() ? std::string(otherwise) : value;
}

}   // namespace

const std::string& log_topics() {
  static const std::string value = read("PUMICE_LOG");
  return value;
}

bool waits_after_launch() {
  static const bool value = read_switch("PUMICE_SYNC");
  return value;
}

const std::string& cuda_driver() {
  static const std::string value = read("PUMICE_CUDA_DRIVER");
  return value;
}

const std::string& nvrtc() {
  static const std::string value = read("PUMICE_NVRTC");
  return value;
}

const std::string& cublas() {
  static const std::string value = read("PUMICE_CUBLAS");
  return value;
}

const std::string& cache_folder() {
  static const std::string value = read("PUMICE_CACHE");
  return value;
}

const std::string& cache_mebibytes() {
  static const std::string value = read("PUMICE_CACHE_MB");
  return value;
}

const std::string& plans() {
  static const std::string value = read("PUMICE_PLANS");
  return value;
}

const std::string& data() {
  static const std::string value = read("PUMICE_DATA");
  return value;
}

const std::string& bundle() {
  static const std::string value = read("PUMICE_BUNDLE");
  return value;
}

std::int64_t kernel_rows() {
  static const std::int64_t value = [] {
    const std::string text = read("PUMICE_KERNEL_ROWS", "1");
    std::int64_t factor = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), factor);
    PUMICE_EXPECTS(failure == std::errc() && end == text.data() + text.size() && factor >= 1 &&
                       factor <= 1'000'000,
                   "PUMICE_KERNEL_ROWS = \"", text, "\": give a number from 1 to 1000000");
    return factor;
  }();
  return value;
}

const std::string& dependent_launch() {
  static const std::string value = read("PUMICE_DEPENDENT_LAUNCH");
  return value;
}

const std::string& cuda_visible_devices() {
  static const std::string value = read("CUDA_VISIBLE_DEVICES");
  return value;
}

const std::string& cuda_home() {
  static const std::string value = read("CUDA_HOME", read("CUDA_PATH").c_str());
  return value;
}

const std::string& virtual_environment() {
  static const std::string value = read("VIRTUAL_ENV");
  return value;
}

const std::string& conda_prefix() {
  static const std::string value = read("CONDA_PREFIX");
  return value;
}

const std::string& xdg_cache_home() {
  static const std::string value = read("XDG_CACHE_HOME");
  return value;
}

const std::string& home() {
  static const std::string value = read("HOME");
  return value;
}

}   // namespace pumice::environment
