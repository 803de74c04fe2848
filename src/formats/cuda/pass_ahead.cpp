// Drafts of sets that the device counts, one wait, and sets and maps whose counts the host knows.
#include "formats/cuda/pass_ahead.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include <pumice/shared/status.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "coords/cuda/coordinate_set.hpp"
#include "coords/cuda/count_reader.hpp"
#include "formats/cuda/counted_cuts.hpp"
#include "formats/cuda/map_formats.hpp"
#include "maps/cuda/strided_set.hpp"
#include "maps/set_options.hpp"

namespace pumice::cuda {
namespace {

using Kind = MapCache::Kind;

/// What is made before anybody has waited: sets with room, and what counts the cuts of maps.
class Draft {
 public:
  explicit Draft(const CoordinateSetPtr& root)
      : runner_(with_own_record(root)), sets_{root}, words_(1) {}

  void add_set(const PassNotes::SetNote& note);
  void add_map(const PassNotes::MapNote& note);
  /// Enqueues the rest of what counts.
  void count_cuts() { cuts_.emplace(runner_, requests_, reader_); }
  /// Waits. False where there is more than there was room for.
  bool read_counts();

  /// After that, as the host knows them: rows and blocks of a set, and the set.
  SetCapacity size(std::size_t set) const;
  std::vector<CoordinateSetPtr> known_sets() const;
  /// Makes the maps of `steps`, in their order.
  std::vector<KernelMapPtr> known_maps(std::span<const PassNotes::MapNote> notes,
                                       const std::vector<CoordinateSetPtr>& sets);

 private:
  /// Of a set that the device counts.
  struct Words {
    bool counted = false;
    std::size_t rows = 0;
    std::size_t blocks = 0;
  };
  struct OfMap {
    KernelMapPtr map;   // between drafts of sets
    std::shared_ptr<const DeviceWindow> window;
    std::size_t requests = 0;
  };

  /// Where the room does not suffice nobody is to hear of it.
  jit::DeviceRunner with_own_record(const CoordinateSetPtr& root) {
    const StreamView stream = root->stream();
    record_ = Buffer<StatusRecord>(1, stream, default_allocator(stream.device));
    fill_bytes_async(record_.data(), std::byte{0}, record_.bytes(), stream);
    return {stream, default_allocator(stream.device), record_.data()};
  }
  RowCountRef known(const RowCountRef& counted) const;

  Buffer<StatusRecord> record_;
  jit::DeviceRunner runner_;
  std::vector<CoordinateSetPtr> sets_;
  std::vector<Words> words_;   // of each set
  std::vector<std::shared_ptr<const DeviceWindow>> windows_;
  std::vector<OfMap> maps_;
  std::vector<CutRequest> requests_;
  CountReader reader_;
  std::optional<CountedCuts> cuts_;
  std::vector<std::int64_t> counts_;
};

void Draft::add_set(const PassNotes::SetNote& note) {
  const CoordinateSetPtr& from = sets_[note.from];
  const KernelWindow& window = note.window;
  const auto root_rows = static_cast<double>(sets_.front()->rows().capacity());
  const Reach reach = note.kind == Kind::generative ? Reach::out_to_in : Reach::in_to_out;
  const std::int64_t reached = note.kind == Kind::cell ? 1 : most_reached(window, reach);
  const std::int64_t most = std::min<std::int64_t>(from->rows().capacity() * reached,
                                                   std::numeric_limits<std::int32_t>::max());
  const auto on_device = windows_.emplace_back(DeviceWindow::on(from->stream(), window));
  const PlannedSet planned{.room = learned_room(note, root_rows, most),
                           .window = on_device.get(),
                           .status = record_.data()};
  sets_.push_back(note.kind == Kind::generative
                      ? generated_set(from, window, generated_options(*from, window), &planned)
                      : strided_set(from, window, note.kind == Kind::cell,
                                    strided_options(*from, window), &planned));
  Words& words = words_.emplace_back();
  const CoordinateSet& made = *sets_.back();
  if (made.rows().host_knows()) return;   // where nothing can be reached
  words = {true, reader_.add(made.on_device()->rows().count),
           reader_.add(made.on_device()->blocks().count)};
}

void Draft::add_map(const PassNotes::MapNote& note) {
  const StreamView stream = sets_.front()->stream();
  OfMap& made = maps_.emplace_back();
  made.map = KernelMap::on_device(note.window, sets_[note.in], sets_[note.out],
                                  note.outputs_are_finer, note.has_identity_offset);
  made.window = DeviceWindow::on(stream, note.window);
  if (made.map->in()->rows().capacity() == 0 || made.map->out()->rows().capacity() == 0) return;
  MapFormats formats(*made.map);
  formats.keep_window(made.window);
  const CutNotes::Remembered wanted = note.cuts->remembered();
  std::vector<CutRequest> requests;
  for (const TilesWanted& tiles : wanted.tiles)
    requests.push_back(formats.request(tiles));
  if (wanted.pairs) formats.list_pairs(requests, 0);
  made.requests = requests.size();
  std::ranges::move(requests, std::back_inserter(requests_));
}

bool Draft::read_counts() {
  counts_ = reader_.wait(runner_);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    if (!words_[i].counted) continue;
    const SetCapacity room = sets_[i]->on_device()->capacity();
    const SetCapacity needed = size(i);
    if (needed.rows > room.rows || needed.blocks > room.blocks) return false;
  }
  return cuts_->fit(counts_);
}

SetCapacity Draft::size(std::size_t set) const {
  const Words& words = words_[set];
  if (words.counted) return {counts_[words.rows], counts_[words.blocks]};
  return {sets_[set]->rows().capacity(), 0};
}

RowCountRef Draft::known(const RowCountRef& counted) const {
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    if (words_[i].counted && sets_[i]->rows().ref().count == counted.count)
      return {nullptr, size(i).rows};
  }
  return counted;
}

std::vector<CoordinateSetPtr> Draft::known_sets() const {
  std::vector<CoordinateSetPtr> known;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    known.push_back(words_[i].counted ? DeviceSetBuilder::counted(*sets_[i], size(i).rows)
                                      : sets_[i]);
  }
  return known;
}

std::vector<KernelMapPtr> Draft::known_maps(std::span<const PassNotes::MapNote> notes,
                                            const std::vector<CoordinateSetPtr>& sets) {
  std::vector<CutMap> cuts =
      cuts_->write({.words = counts_, .rows = [this](const RowCountRef& of) { return known(of); }});
  std::vector<KernelMapPtr> maps;
  std::size_t next = 0;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const PassNotes::MapNote& note = notes[i];
    const KernelMapPtr& map =
        maps.emplace_back(KernelMap::on_device(note.window, sets[note.in], sets[note.out],
                                               note.outputs_are_finer, note.has_identity_offset));
    MapFormats& formats = MapFormats::of(*map);
    formats.keep_window(maps_[i].window);
    for (std::size_t n = 0; n < maps_[i].requests; ++n, ++next)
      formats.keep(requests_[next], std::move(cuts[next]));
  }
  return maps;
}

}   // namespace

PassAhead::PassAhead(std::shared_ptr<PassNotes> notes, const CoordinateSetPtr& root)
    : notes_(std::move(notes)),
      root_rows_(static_cast<double>(root->size())),
      number_{{root.get(), 0}},
      sets_{root} {
  const PassNotes::Steps steps = notes_->steps();
  const auto fits = [&](const auto& note) { return note.window.dimension == root->dimension(); };
  const auto is_learned = [&](const PassNotes::SetNote& note) {
    return is_learned_for(note, root_rows_);
  };
  // Without sets nobody would wait, and no layer is to wait for the sake of room.
  if (!steps.sets.empty() && std::ranges::all_of(steps.sets, is_learned) &&
      std::ranges::all_of(steps.sets, fits) && std::ranges::all_of(steps.maps, fits))
    make(root, steps);
}

void PassAhead::make(const CoordinateSetPtr& root, const PassNotes::Steps& steps) {
  Draft draft(root);
  try {
    for (const PassNotes::SetNote& note : steps.sets)
      draft.add_set(note);
    for (const PassNotes::MapNote& note : steps.maps)
      draft.add_map(note);
    draft.count_cuts();
  } catch (const UserError&) {
    return;   // a layer that cannot work on these sites says so itself, if it is called
  }
  const bool suffices = draft.read_counts();
  if (logging(LogTopic::map)) {
    std::ostringstream text;
    text << steps.sets.size() << " sets and " << steps.maps.size() << " maps made ahead of a pass"
         << (suffices ? "" : ": they need more room, and are made one by one");
    log(LogTopic::map, text.str());
  }
  if (!suffices) return;
  sets_ = draft.known_sets();
  for (std::size_t i = 1; i < sets_.size(); ++i) {
    const SetCapacity size = draft.size(i);
    notes_->learn_size(i, size, root_rows_);
    number_.emplace(sets_[i].get(), i);
  }
  const std::vector<KernelMapPtr> maps = draft.known_maps(steps.maps, sets_);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const PassNotes::MapNote& note = steps.maps[i];
    MapFormats::of(*maps[i]).note_in(note.cuts);
    ready_.push_back(
        {{{note.kind, sets_[note.in], note.key_names_out ? sets_[note.out] : nullptr, note.window},
          maps[i]},
         i});
  }
}

KernelMapPtr PassAhead::take(const MapCache::Key& key) {
  const auto found =
      std::ranges::find_if(ready_, [&](const Ready& ready) { return ready.entry.key == key; });
  if (found == ready_.end()) return nullptr;
  KernelMapPtr map = std::move(found->entry.map);
  notes_->ask_for_map(found->number);
  ready_.erase(found);
  return map;
}

void PassAhead::note(const MapCache::Entry& made) {
  const auto in = number_.find(made.key.in.get());
  if (in == number_.end()) return;   // sites of another origin
  const CoordinateSet& to = *made.map->out();
  auto out = number_.find(&to);
  if (out == number_.end()) {
    if (made.key.out != nullptr || !to.rows().host_knows()) return;
    const auto number = notes_->ask_for_set(in->second, made);
    if (!number) return;
    const auto& counted = to.on_device()->counted();
    notes_->learn_size(*number, counted ? *counted : SetCapacity{to.size(), to.size()}, root_rows_);
    out = number_.emplace(&to, *number).first;
  }
  const auto cuts = notes_->ask_for_map(in->second, out->second, made);
  if (cuts != nullptr) MapFormats::of(*made.map).note_in(cuts);
}

}   // namespace pumice::cuda
