// What a call complains about.
#pragma once

#include <string>

#include <pumice/core/error.hpp>

namespace pumice::test {

/// The message of the UserError that `call` throws; "(nothing was thrown)" when it throws none.
template <class Call> std::string message_of(Call&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}   // namespace pumice::test
