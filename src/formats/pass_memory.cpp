// Whose notes a pass begins with.
#include <pumice/formats/pass_memory.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "formats/cuda/pass_ahead.hpp"

namespace pumice {

struct PassMemory::State {
  using Notes = std::shared_ptr<const cuda::PassNotes>;

  Notes notes(Followed followed) {
    const std::scoped_lock lock(mutex);
    return of(followed);
  }
  void keep(Followed followed, Notes notes) {
    const std::scoped_lock lock(mutex);
    of(followed) = std::move(notes);
  }

 private:
  Notes& of(Followed followed) { return last[static_cast<std::size_t>(followed)]; }

  std::mutex mutex;
  std::array<Notes, 2> last{};   // of the pass of each kind that began last
};

PassMemory::PassMemory() : state_(std::make_shared<State>()) {}

bool PassMemory::begins(const MapCache& maps) {
  return maps.entries().empty() && maps.ahead() == nullptr;
}

void PassMemory::begin(MapCache& maps, const CoordinateSetPtr& root, StreamView caller,
                       Followed followed) const {
  if (!begins(maps)) return;
  if (root == nullptr || root->device().kind != DeviceKind::cuda) return;
  if (!root->rows().host_knows() || root->size() == 0) return;
  if (!can_wait(root->stream()) || !can_wait(caller)) return;
  const auto last = state_->notes(followed);
  const auto notes = last == nullptr ? std::make_shared<cuda::PassNotes>()
                                     : std::make_shared<cuda::PassNotes>(*last);
  try {
    maps.set_ahead(std::make_shared<cuda::PassAhead>(notes, root));
  } catch (const UserError&) {
    throw;   // of what was enqueued before
  } catch (...) {
    state_->keep(followed, nullptr);   // what was remembered takes more than there is, perhaps
    throw;
  }
  state_->keep(followed, notes);
}

}   // namespace pumice
