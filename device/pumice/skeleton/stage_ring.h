// The stages between warps that gather and warps that multiply, with two barriers for each: `full`
// ends its phase when everything has landed, `empty` when nobody reads the stage any more.
#pragma once

#include <pumice/block/barrier.h>

namespace pumice {

template <int32_t kStages, int32_t kStageBytes> class StageRing {
 public:
  PUMICE_DEVICE StageRing(uint32_t stages, uint32_t barriers)
      : stages_(stages), barriers_(barriers) {}

  /// By one thread, before all others use it. `arrivals` fill a stage, `releases` empty it.
  PUMICE_DEVICE void init(int32_t arrivals, int32_t releases) const {
    PUMICE_ROLLED
    for (int32_t s = 0; s < kStages; ++s) {
      barrier_init(barriers_ + 8 * s, arrivals);
      barrier_init(empty(s), releases);
    }
    barrier_init_fence();
  }

  PUMICE_DEVICE uint32_t stage() const { return stages_ + index_ * kStageBytes; }
  PUMICE_DEVICE int32_t index() const { return index_; }
  PUMICE_DEVICE uint32_t full() const { return barriers_ + 8 * index_; }
  PUMICE_DEVICE void wait_full() const { barrier_wait(full(), phase_); }
  PUMICE_DEVICE void wait_empty() const { barrier_wait(empty(index_), phase_ ^ 1); }
  PUMICE_DEVICE void release(int32_t index) const { barrier_arrive(empty(index)); }

  PUMICE_DEVICE void advance() {
    if (++index_ == kStages) {
      index_ = 0;
      phase_ ^= 1;
    }
  }

 private:
  PUMICE_DEVICE uint32_t empty(int32_t index) const { return barriers_ + 8 * (kStages + index); }

  uint32_t stages_;
  uint32_t barriers_;
  int32_t index_ = 0;
  uint32_t phase_ = 0;   // how often the ring has gone round, mod 2
};

}   // namespace pumice
