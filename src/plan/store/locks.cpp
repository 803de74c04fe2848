// One lock for all stores rather than one for each: forking has to know them all.
#include "plan/store/locks.hpp"

#include <pthread.h>

namespace pumice::tune {
namespace {

struct Locks {
  std::mutex database;
  std::mutex answers;
};

Locks& locks() {
  // Never destroyed: a process may fork while it ends.
  static Locks& instance = [&]() -> Locks& {
    static auto* made = new Locks;
    pthread_atfork([] { made->database.lock(), made->answers.lock(); },
                   [] { made->answers.unlock(), made->database.unlock(); },
                   [] { made->answers.unlock(), made->database.unlock(); });
    return *made;
  }();
  return instance;
}

}   // namespace

std::mutex& database_mutex() {
  return locks().database;
}

std::mutex& answers_mutex() {
  return locks().answers;
}

}   // namespace pumice::tune
