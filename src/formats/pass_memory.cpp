// Whose notes a pass begins with.
#include <pumice/formats/pass_memory.hpp>

#include <mutex>
#include <utility>

#include <pumice/core/stream.hpp>

#include "formats/cuda/pass_ahead.hpp"

namespace pumice {

struct PassMemory::State {
  std::mutex mutex;
  std::shared_ptr<const cuda::PassNotes> last;   // of the pass that began last
};

PassMemory::PassMemory() : state_(std::make_shared<State>()) {}

void PassMemory::begin(MapCache& maps, const CoordinateSetPtr& root, StreamView caller) const {
  if (!maps.entries().empty() || maps.ahead() != nullptr) return;
  if (root == nullptr || root->device().kind != DeviceKind::cuda) return;
  if (!root->rows().host_knows() || root->size() == 0) return;
  if (!can_wait(root->stream()) || !can_wait(caller)) return;
  std::shared_ptr<const cuda::PassNotes> last;
  {
    const std::scoped_lock lock(state_->mutex);
    last = state_->last;
  }
  const auto notes = last == nullptr ? std::make_shared<cuda::PassNotes>()
                                     : std::make_shared<cuda::PassNotes>(*last);
  maps.set_ahead(std::make_shared<cuda::PassAhead>(notes, root));
  const std::scoped_lock lock(state_->mutex);
  state_->last = notes;
}

}   // namespace pumice
