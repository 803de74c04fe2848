// Giving Python's lock, the GIL, away and taking it, for threads that may outlive the interpreter.
#pragma once

#include <nanobind/nanobind.h>

namespace pumice::python {

/// Python before 3.14 ends a thread that asks for the GIL after the interpreter has begun to end,
/// as it does a daemon's: it unwinds the thread's stack, and the first frame that lets nothing
/// through, as a destructor, ends the process ("terminate called without an active exception").
/// Threads that ask here stay where they are until the process has ended, as they do with later
/// versions.
///
/// As long as it lives, other threads may have the GIL.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// As long as it lives, its thread has the GIL, which it may have had before.
class GilTaken {
 public:
  GilTaken();
  ~GilTaken() { PyGILState_Release(state_); }
  GilTaken(const GilTaken&) = delete;
  GilTaken& operator=(const GilTaken&) = delete;

 private:
  PyGILState_STATE state_;
};

}   // namespace pumice::python
