// hyb(c, k): entries by part of the columns, and rows within it by how many entries they have
// there.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/error.hpp>
#include <pumice/formats/decompositions.hpp>

#include "formats/cpu/cut_parts.hpp"
#include "formats/cpu/sorted_places.hpp"
#include "formats/cuda/part_cut.hpp"
#include "formats/cut_checks.hpp"

namespace pumice::formats {
namespace {

constexpr const char* kOp = "hyb";
constexpr std::int64_t kMostParts = std::int64_t{1} << 20;

std::int64_t rows_with_entries(const CsrView& pattern, StreamView stream) {
  if (stream.device.kind != DeviceKind::cpu) {
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    return cuda::measure_rows(runner, pattern).filled;
  }
  std::int64_t rows = 0;
  for (std::int64_t row = 0; row < pattern.rows; ++row)
    rows += pattern.end_of(row) > pattern.begin_of(row) ? 1 : 0;
  return rows;
}

/// 1, 2, 4, … up to the first that is at least the mean of rows that have entries.
std::vector<std::int64_t> widths_for(const CsrView& pattern, StreamView stream) {
  const std::int64_t rows = rows_with_entries(pattern, stream);
  std::vector<std::int64_t> widths{1};
  while (widths.back() * rows < pattern.entries())
    widths.push_back(2 * widths.back());
  return widths;
}

void check_options(const HybOptions& options) {
  const std::vector<std::int64_t>& widths = options.widths;
  for (std::size_t i = 0; i < widths.size(); ++i)
    PUMICE_EXPECTS(widths[i] >= 1 && (i == 0 || widths[i] > widths[i - 1]), kOp, ": widths[", i,
                   "] = ", widths[i], ": give widths from 1 on, each larger than the one before");
  PUMICE_EXPECTS(
      options.column_parts >= 1 &&
          options.column_parts <=
              kMostParts / std::max<std::int64_t>(static_cast<std::int64_t>(widths.size()), 1),
      kOp, ": column_parts = ", options.column_parts, " for ", widths.size(),
      " widths: give 1 on, and at most ", kMostParts, " parts");
}

/// By place: column part · widths + the first that is as wide as the row has entries there.
Buffer<std::int32_t> parts_by_place(const CsrView& pattern, const HybOptions& options,
                                    const Buffer<std::int32_t>& type, std::int64_t types) {
  const Buffer<std::int32_t> row = cpu::rows_of_places(pattern);
  Buffer<std::int64_t> places = cpu::all_places(pattern.entries());
  const auto type_of = [&](std::int64_t place) { return types == 0 ? 0 : type[place]; };
  if (types > 1) cpu::sort_by(places, types, type_of);
  const std::int64_t share = std::max<std::int64_t>(
      (pattern.columns + options.column_parts - 1) / options.column_parts, 1);
  const auto share_of = [&](std::int64_t place) {
    return pattern.column[static_cast<std::size_t>(place)] / share;
  };
  const auto count = static_cast<std::int64_t>(options.widths.size());
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(options.column_parts));
  Buffer<std::int32_t> part(pattern.entries());
  for (std::int64_t begin = 0; begin < places.size();) {
    std::int64_t end = begin;
    for (; end < places.size() && row[places[end]] == row[places[begin]] &&
           type_of(places[end]) == type_of(places[begin]);
         ++end)
      ++lengths[static_cast<std::size_t>(share_of(places[end]))];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t of = share_of(places[i]);
      const auto wide_enough =
          std::ranges::lower_bound(options.widths, lengths[static_cast<std::size_t>(of)]);
      const std::int64_t bucket = std::min(wide_enough - options.widths.begin(), count - 1);
      part[places[i]] = static_cast<std::int32_t>(of * count + bucket);
    }
    for (std::int64_t i = begin; i < end; ++i)
      lengths[static_cast<std::size_t>(share_of(places[i]))] = 0;
    begin = end;
  }
  return part;
}

}   // namespace

Decomposed hyb(const CsrView& pattern, const HybOptions& options, const EdgeTypes& types,
               StreamView stream) {
  check_cuttable(pattern, stream, kOp);
  HybOptions used = options;
  if (used.widths.empty()) used.widths = widths_for(pattern, stream);
  check_options(used);
  std::vector<PartShape> shapes;
  for (std::int64_t share = 0; share < used.column_parts; ++share)
    for (const std::int64_t width : used.widths)
      shapes.push_back({.width = width});
  if (stream.device.kind != DeviceKind::cpu) {
    jit::DeviceRunner runner(stream, default_allocator(stream.device));
    cuda::PartAssignment assignment{.type = cuda::types_by_place(runner, pattern, types, kOp),
                                    .types = types.type.defined() ? types.count : 0};
    assignment.part = cuda::hyb_parts(runner, pattern, used, assignment.type, assignment.types);
    return cuda::cut(runner, pattern, shapes, assignment, kOp);
  }
  cpu::Assignment assignment{.type = cpu::types_by_place(pattern, types, kOp)};
  if (types.type.defined()) assignment.types = types.count;
  assignment.part = parts_by_place(pattern, used, assignment.type, assignment.types);
  return cpu::cut(pattern, shapes, assignment, kOp);
}

}   // namespace pumice::formats
