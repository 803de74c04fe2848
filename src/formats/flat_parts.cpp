#include "formats/flat_parts.hpp"

#include <utility>

namespace pumice {

FlatParts::FlatParts(std::vector<FlatPart> parts, bool numbered, std::int64_t of_types,
                     StreamView stream)
    : part(std::move(parts)), types(of_types) {
  std::int64_t lines = 0, begins = 0, slots = 0, positions = 0;
  for (const FlatPart& one : part) {
    lines += one.lines;
    slots += one.slots;
    positions += one.slots * one.shape.positions();
    if (one.shape.width == 0) begins += one.lines + 1;
  }
  row = Tensor({lines}, DType::i32, stream);
  slot_begin = Tensor({begins}, DType::i64, stream);
  column = Tensor({slots}, DType::i32, stream);
  if (numbered) entry = Tensor({positions}, DType::i64, stream);
  if (types > 0)
    type_begin = Tensor({static_cast<std::int64_t>(part.size()) * (types + 1)}, DType::i64, stream);
}

std::vector<Part> FlatParts::parts() const {
  std::int64_t line = 0, begin = 0, slot = 0, position = 0, type = 0;
  std::vector<Part> made;
  for (const FlatPart& one : part) {
    const std::int64_t positions = one.slots * one.shape.positions();
    Part& own = made.emplace_back(Part{.shape = one.shape,
                                       .row = row.part(line, {one.lines}),
                                       .slot_begin = {},
                                       .column = column.part(slot, {one.slots}),
                                       .entry = {},
                                       .type_begin = {}});
    if (entry.defined()) own.entry = entry.part(position, {positions});
    if (one.shape.width == 0) {
      own.slot_begin = slot_begin.part(begin, {one.lines + 1});
      begin += one.lines + 1;
    }
    if (types > 0) {
      own.type_begin = type_begin.part(type, {types + 1});
      type += types + 1;
    }
    line += one.lines;
    slot += one.slots;
    position += positions;
  }
  return made;
}

}   // namespace pumice
