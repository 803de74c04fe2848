// An event is destroyed by its one owner.
// fails with: deleted .*Event
#include <pumice/core/stream.hpp>

pumice::Event pass_on(pumice::Event& event) {
#ifdef PUMICE_MISUSE
  return event;
#else
  return std::move(event);
#endif
}
