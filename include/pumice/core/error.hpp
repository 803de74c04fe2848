// What went wrong, and whose mistake it was.
#pragma once

#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>

namespace pumice {

/// The base of everything Pumice throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller broke a contract or handed in bad data. The message names the argument, its value
/// and the remedy, in one sentence a person can act on.
class UserError : public Error {
 public:
  using Error::Error;
};

/// Pumice broke an invariant of its own. The message carries the place.
class InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {

template <class... Parts> std::string concatenate(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts> [[noreturn]] void raise_user(const Parts&... parts) {
  throw UserError(concatenate(parts...));
}

template <class... Parts>
[[noreturn]] void raise_internal(std::source_location at, const Parts&... parts) {
  throw InternalError(concatenate(parts..., "\n  at ", at.file_name(), ':', at.line(),
                                  "\n  this is a bug in pumice, not in your input"));
}

}   // namespace detail
}   // namespace pumice

/// Throws UserError unless `condition`; the message is the remaining arguments, concatenated, and
/// is only built on failure: PUMICE_EXPECTS(n > 0, "threads = ", n, ": ask for at least 1").
#define PUMICE_EXPECTS(condition, ...) \
  ((condition) ? void(0) : ::pumice::detail::raise_user(__VA_ARGS__))

/// Throws InternalError, with the place, unless `condition`.
#define PUMICE_ENSURES(condition, ...)                                                         \
  ((condition) ? void(0)                                                                       \
               : ::pumice::detail::raise_internal(std::source_location::current(), #condition, \
                                                  " does not hold: ", __VA_ARGS__))
