// Memory for pairs on their way into lists.
#include "maps/cpu/pair_lists.hpp"

namespace pumice {

PairStore::Piece PairStore::take(std::int64_t pairs) {
  constexpr std::int64_t kPiece =
      (std::int64_t{2} << 20) / static_cast<std::int64_t>(sizeof(FoundPair));
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const Piece& piece) {
    return piece.end - piece.next >= pairs;
  });
  if (found != free_.end()) {
    const Piece piece = *found;
    free_.erase(found);
    return piece;
  }
  Buffer<FoundPair>& memory = memory_.emplace_back(std::max(kPiece, pairs));
  return {memory.data(), memory.data() + memory.size()};
}

void PairStore::give_back(Piece piece) {
  const std::lock_guard lock(mutex_);
  free_.push_back(piece);
}

void PairSink::move_on() {
  const auto used = static_cast<std::int64_t>(piece_.next - first_);
  const PairStore::Piece larger = store_.take(2 * used + offsets_);
  std::copy(first_, piece_.next, larger.next);
  piece_ = {larger.next + used, larger.end};
  first_ = larger.next;
}

}   // namespace pumice
