// Noting, and forgetting what nobody asks for any more.
#include "formats/cuda/pass_notes.hpp"

#include <algorithm>
#include <cmath>

namespace pumice::cuda {
namespace {

constexpr double kMargin = 1.25;            // by which scans may be denser than those before
constexpr std::int64_t kLeastRoom = 1024;   // small levels differ most from scan to scan
constexpr double kComparable = 4;           // times as many rows

std::int64_t room_for(double count, std::int64_t most) {
  const double wanted = std::ceil(std::max(count * kMargin, static_cast<double>(kLeastRoom)));
  return wanted < static_cast<double>(most) ? static_cast<std::int64_t>(wanted) : most;
}

/// Networks have some dozen; who makes maps of ever other windows on one set is not followed.
constexpr std::size_t kMostNoted = 256;

/// Sizes follow growth at once and fall by an eighth of the difference, so that scans that are
/// dense by turns find room.
double learned(double before, double seen) {
  return seen > before ? seen : before - (before - seen) / 8;
}

}   // namespace

SetCapacity learned_room(const PassNotes::SetNote& note, double root_rows, std::int64_t most) {
  const std::int64_t rows = room_for(note.rows * root_rows, most);
  return {rows, room_for(note.blocks * root_rows, rows)};
}

bool is_learned_for(const PassNotes::SetNote& note, double root_rows) {
  return note.root_rows * kComparable >= root_rows;
}

PassNotes::PassNotes(const PassNotes& earlier) {
  const std::scoped_lock lock(earlier.mutex_);
  const int age = earlier.asks_for_sets_ || earlier.has_ended_ ? 1 : 0;
  const auto is_forgotten = [&](auto& note) {
    note.unasked += age;
    return note.unasked > kPassesRemembered;
  };
  std::vector<std::optional<std::size_t>> number(earlier.steps_.sets.size() + 1);
  number[0] = 0;
  for (std::size_t i = 0; i < earlier.steps_.sets.size(); ++i) {
    SetNote note = earlier.steps_.sets[i];
    if (is_forgotten(note) || !number[note.from]) continue;
    note.from = *number[note.from];
    steps_.sets.push_back(std::move(note));
    number[i + 1] = steps_.sets.size();
  }
  for (MapNote note : earlier.steps_.maps) {
    if (is_forgotten(note) || !number[note.in] || !number[note.out]) continue;
    note.in = *number[note.in];
    note.out = *number[note.out];
    note.cuts = std::make_shared<CutNotes>(*note.cuts, age);
    steps_.maps.push_back(std::move(note));
  }
}

PassNotes::Steps PassNotes::steps() const {
  const std::scoped_lock lock(mutex_);
  return steps_;
}

std::optional<std::size_t> PassNotes::ask_for_set(std::size_t from, const MapCache::Entry& made) {
  const std::scoped_lock lock(mutex_);
  const auto is_this = [&](const SetNote& note) {
    return note.from == from && note.kind == made.key.kind && note.window == made.key.window;
  };
  auto known = std::ranges::find_if(steps_.sets, is_this);
  if (known == steps_.sets.end()) {
    if (steps_.sets.size() >= kMostNoted) return std::nullopt;
    known =
        steps_.sets.insert(known, {.from = from, .kind = made.key.kind, .window = made.key.window});
  }
  known->unasked = 0;
  asks_for_sets_ = true;
  return static_cast<std::size_t>(known - steps_.sets.begin()) + 1;
}

std::shared_ptr<CutNotes> PassNotes::ask_for_map(std::size_t in, std::size_t out,
                                                 const MapCache::Entry& made) {
  const std::scoped_lock lock(mutex_);
  const auto is_this = [&](const MapNote& note) {
    return note.in == in && note.out == out && note.kind == made.key.kind &&
           note.window == made.key.window;
  };
  auto known = std::ranges::find_if(steps_.maps, is_this);
  if (known == steps_.maps.end()) {
    if (steps_.maps.size() >= kMostNoted) return nullptr;
    known = steps_.maps.insert(known, {.kind = made.key.kind,
                                       .in = in,
                                       .out = out,
                                       .key_names_out = made.key.out != nullptr,
                                       .window = made.key.window,
                                       .outputs_are_finer = made.map->outputs_are_finer(),
                                       .has_identity_offset = made.map->view().has_identity_offset,
                                       .cuts = std::make_shared<CutNotes>()});
  }
  known->unasked = 0;
  return known->cuts;
}

void PassNotes::ask_for_map(std::size_t number) {
  const std::scoped_lock lock(mutex_);
  MapNote& map = steps_.maps[number];
  map.unasked = 0;
  for (const std::size_t of : {map.in, map.out}) {
    if (of == 0) continue;
    set(of).unasked = 0;
    asks_for_sets_ = true;
  }
}

void PassNotes::end() {
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
}

void PassNotes::learn_size(std::size_t number, const SetCapacity& size, double root_rows) {
  const std::scoped_lock lock(mutex_);
  SetNote& note = set(number);
  const double rows = static_cast<double>(size.rows) / root_rows;
  const double blocks = static_cast<double>(size.blocks) / root_rows;
  if (!is_learned_for(note, root_rows)) {
    note.rows = rows;
    note.blocks = blocks;
    note.root_rows = root_rows;
    return;
  }
  const SetCapacity room = learned_room(note, root_rows, size.rows);   // of rows at most the size
  const bool had_room = room.rows >= size.rows && room.blocks >= std::min(size.blocks, size.rows);
  if (root_rows * kComparable < note.root_rows && had_room) return;
  note.rows = learned(note.rows, rows);
  note.blocks = learned(note.blocks, blocks);
  note.root_rows = root_rows;
}

}   // namespace pumice::cuda
