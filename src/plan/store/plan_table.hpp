// Tables of plans as JSON: what is exported, merged, and shipped with the library.
#pragma once

#include <cstdint>
#include <string>

#include <pumice/plan/store.hpp>

namespace pumice::tune {

/// "2025-11-24T13:46:25.123Z"
std::string utc_text(std::int64_t unix_ms);

}   // namespace pumice::tune
