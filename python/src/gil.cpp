// What a thread does that Python ends.
#include "gil.hpp"

#include <unistd.h>

namespace pumice::python {
namespace {

/// Where the stack is unwound before the GIL has come, it is no further than to here.
class StaysUntilGil {
 public:
  ~StaysUntilGil() {
    while (!has_come)
      pause();   // which returns after a signal
  }
  bool has_come = false;
};

// Not inlined: in a frame that lets nothing through, the compiler leaves out what is to run when
// something comes.
[[gnu::noinline]] void take_back(PyThreadState* state) {
  StaysUntilGil here;
  PyEval_RestoreThread(state);
  here.has_come = true;
}

[[gnu::noinline]] PyGILState_STATE take() {
  StaysUntilGil here;
  const PyGILState_STATE state = PyGILState_Ensure();
  here.has_come = true;
  return state;
}

}   // namespace

GilReleased::~GilReleased() {
  take_back(state_);
}

GilTaken::GilTaken() : state_(take()) {}

}   // namespace pumice::python
