// Parts from the CPU to a device and back. Covers copy_to and copy_to_host of decomposed.hpp.
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/formats/decomposed.hpp>

#include "formats/cuda/part_table.hpp"
#include "formats/flat_parts.hpp"

namespace pumice {
namespace {

Buffer<std::int64_t> copied(std::span<const std::int64_t> list, Device from, Device to,
                            StreamView stream) {
  Buffer<std::int64_t> made(static_cast<std::int64_t>(list.size()),
                            to.kind == DeviceKind::cpu ? StreamView{} : stream,
                            default_allocator(to));
  if (!list.empty()) copy_async(made.data(), to, list.data(), from, list.size_bytes(), stream);
  return made;
}

/// Of one device.
DecomposedLists copied_lists(const Decomposed& decomposed, Device to, StreamView stream) {
  return {decomposed.rows(),
          decomposed.columns(),
          decomposed.entries(),
          {},
          copied(decomposed.row_begin(), decomposed.device(), to, stream),
          copied(decomposed.place(), decomposed.device(), to, stream)};
}

}   // namespace

Decomposed copy_to(StreamView stream, const Decomposed& decomposed) {
  PUMICE_EXPECTS(decomposed.device().kind == DeviceKind::cpu, "copy_to: the parts are on ",
                 to_string(decomposed.device()), ": give parts on the CPU");
  DecomposedLists lists = copied_lists(decomposed, stream.device, stream);
  std::vector<FlatPart> sizes;
  bool is_numbered = false, is_single = true;
  for (std::size_t i = 0; i < decomposed.parts().size(); ++i) {
    const Part& part = decomposed.parts()[i];
    const bool has_single_slots = part.shape.positions() == 1;
    PUMICE_EXPECTS(!has_single_slots || decomposed.views()[i].is_single, "copy_to: part ", i,
                   " has a hole in a slot with a column, which products on a device would read: "
                   "give holes the column -1");
    sizes.push_back({part.shape, part.row.rows(), part.column.rows()});
    is_numbered = is_numbered || part.entry.defined();
    is_single = is_single && has_single_slots;
  }
  const FlatParts flat(std::move(sizes), is_numbered, 0, stream);
  lists.parts = flat.parts();
  for (std::size_t i = 0; i < lists.parts.size(); ++i) {
    const Part& from = decomposed.parts()[i];
    Part& to = lists.parts[i];
    const auto copy = [&](Tensor& list, const Tensor& of) {
      if (of.elements() > 0) copy_async(list.view(), of, stream);
    };
    copy(to.row, from.row);
    copy(to.column, from.column);
    if (to.slot_begin.defined()) copy(to.slot_begin, from.slot_begin);
    if (to.entry.defined() && from.entry.defined()) copy(to.entry, from.entry);
    if (from.type_begin.defined()) to.type_begin = pumice::copy_to(stream, from.type_begin);
  }
  if (stream.device.kind == DeviceKind::cpu) return Decomposed(std::move(lists));
  PartTable table;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  if (is_single) table = cuda::part_table(runner, flat, decomposed.rows());
  wait(stream);   // who makes a table has, but of blocks there is none
  return {std::move(lists), std::move(table)};
}

Decomposed copy_to_host(const Decomposed& decomposed, StreamView stream) {
  PUMICE_EXPECTS(decomposed.device() == stream.device, "copy_to_host: the parts are on ",
                 to_string(decomposed.device()), " and the stream on ", to_string(stream.device),
                 ": give a stream of the parts' device");
  DecomposedLists lists = copied_lists(decomposed, Device{}, stream);
  for (const Part& part : decomposed.parts()) {
    const auto copy = [&](const Tensor& list) {
      return list.defined() ? copy_to_host(list, stream) : Tensor();
    };
    lists.parts.push_back({.shape = part.shape,
                           .row = copy(part.row),
                           .slot_begin = copy(part.slot_begin),
                           .column = copy(part.column),
                           .entry = copy(part.entry),
                           .type_begin = copy(part.type_begin)});
  }
  wait(stream);
  return Decomposed(std::move(lists));
}

}   // namespace pumice
