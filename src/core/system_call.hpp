// What reading and writing files share about system calls.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

namespace pumice::detail {

constexpr std::size_t kMostPerCall = std::size_t{1} << 30;   // Linux moves less than 2 GiB a call

/// An error number in words.
inline std::string reason(int error) {
  return std::strerror(error);
}

}   // namespace pumice::detail
