// Locks of all stores of a process, which forking takes part in.
#pragma once

#include <mutex>

namespace pumice::tune {

/// Both are held while this process forks, so that a child finds no database open, which SQLite
/// could use no more, and no lock taken by a thread that it does not have. Taken in this order.
std::mutex& database_mutex();
std::mutex& answers_mutex();

}   // namespace pumice::tune
