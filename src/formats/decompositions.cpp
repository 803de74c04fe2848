// The formats that are one part, anybody's own, and whole blocks.
#include <pumice/formats/decompositions.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <pumice/core/allocator.hpp>
#include <pumice/core/error.hpp>

#include "formats/cpu/cut_parts.hpp"
#include "formats/cuda/part_cut.hpp"
#include "formats/cut_checks.hpp"
#include "graphs/entry_numbers.hpp"

namespace pumice::formats {
namespace {

jit::DeviceRunner runner_on(StreamView stream) {
  return {stream, default_allocator(stream.device)};
}

Decomposed one_part(const CsrView& pattern, const PartShape& shape, StreamView stream,
                    const char* op, const EdgeTypes& types = {}) {
  check_cuttable(pattern, stream, op);
  if (stream.device.kind != DeviceKind::cpu) {
    jit::DeviceRunner runner = runner_on(stream);
    return cuda::cut(runner, pattern, std::span(&shape, 1),
                     {.type = cuda::types_by_place(runner, pattern, types, op),
                      .types = types.type.defined() ? types.count : 0},
                     op);
  }
  return cpu::cut(pattern, std::span(&shape, 1),
                  {.type = cpu::types_by_place(pattern, types, op),
                   .types = types.type.defined() ? types.count : 0},
                  op);
}

/// Where the entries of each row begin, where every position is an entry.
Buffer<std::int64_t> whole_rows(const Part& part, std::int64_t rows) {
  const std::int64_t high = part.shape.block_rows;
  const auto begin = part.slot_begin.span<std::int64_t>();
  Buffer<std::int64_t> made(rows + 1);
  made[0] = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto line = static_cast<std::size_t>(row / high);
    made[row + 1] = made[row] + (begin[line + 1] - begin[line]) * part.shape.block_columns;
  }
  return made;
}

void check_grid(std::int64_t rows, std::int64_t columns, const PartShape& shape, const char* op) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(shape.block_rows >= 1 && shape.block_columns >= 1, op, ": blocks of ",
                 shape.block_rows, " x ", shape.block_columns, ": give at least 1 x 1");
  PUMICE_EXPECTS(rows >= 0 && columns >= 0 && rows <= kMost && columns <= kMost &&
                     rows % shape.block_rows == 0 && columns % shape.block_columns == 0,
                 op, ": ", rows, " x ", columns, " in blocks of ", shape.block_rows, " x ",
                 shape.block_columns, ": give multiples, of at most 2147483647");
}

/// A list of numbers as i32 or i64.
template <class T> Tensor converted(ConstTensorView list, DType dtype) {
  Tensor made({list.rows()}, dtype);
  with_numbers(list, [&](auto numbers) {
    std::ranges::transform(numbers, made.span<T>().begin(),
                           [](auto number) { return static_cast<T>(number); });
  });
  return made;
}

void check_list(ConstTensorView list, const char* op, const char* name) {
  PUMICE_EXPECTS(list.defined() && list.rank() == 1 && list.device().kind == DeviceKind::cpu &&
                     (list.dtype() == DType::i32 || list.dtype() == DType::i64),
                 op, ": ", name, " is ", name_of(list.dtype()), ' ', to_string(list.shape()),
                 " on ", to_string(list.device()),
                 ": give a list of whole numbers, i32 or i64, on the CPU");
}

Decomposed whole(std::int64_t rows, std::int64_t columns, Part part, const char* op) {
  const auto line = part.slot_begin.span<std::int64_t>();
  const std::int64_t blocks = part.column.rows();
  const bool fits = part.slot_begin.rows() == rows / part.shape.block_rows + 1 &&
                    line.front() == 0 && line.back() == blocks && std::ranges::is_sorted(line);
  PUMICE_EXPECTS(fits, op, ": block_row_begin has ", part.slot_begin.rows(), " bounds for ",
                 rows / part.shape.block_rows, " rows of blocks and ", blocks,
                 " blocks: give one more than rows, ascending from 0 to the number of blocks");
  part.row = Tensor({rows / part.shape.block_rows}, DType::i32);
  for (std::int64_t row = 0; row < part.row.rows(); ++row)
    part.row.span<std::int32_t>()[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(row);
  DecomposedLists lists{rows, columns, blocks * part.shape.positions(), {}, {}, {}};
  lists.row_begin = whole_rows(part, rows);
  lists.parts.push_back(std::move(part));
  return Decomposed(std::move(lists));
}

}   // namespace

Decomposed identity(const CsrView& pattern, StreamView stream) {
  return one_part(pattern, {.all_rows = true}, stream, "identity");
}

Decomposed dcsr(const CsrView& pattern, StreamView stream) {
  return one_part(pattern, {}, stream, "dcsr");
}

Decomposed padded_csr(const CsrView& pattern, std::int64_t multiple, StreamView stream) {
  return one_part(pattern, {.multiple = multiple, .all_rows = true}, stream, "padded_csr");
}

Decomposed ell(const CsrView& pattern, std::int64_t width, StreamView stream) {
  check_cuttable(pattern, stream, "ell");
  std::int64_t longest = 1;
  if (width == 0 && stream.device.kind != DeviceKind::cpu) {
    jit::DeviceRunner runner = runner_on(stream);
    longest = std::max(longest, cuda::measure_rows(runner, pattern).longest);
  } else if (width == 0) {
    for (std::int64_t row = 0; row < pattern.rows; ++row)
      longest = std::max(longest, pattern.end_of(row) - pattern.begin_of(row));
  }
  return one_part(pattern, {.width = width == 0 ? longest : width}, stream, "ell");
}

Decomposed bsr(const CsrView& pattern, std::int64_t block_rows, std::int64_t block_columns,
               StreamView stream) {
  return one_part(pattern,
                  {.block_rows = block_rows, .block_columns = block_columns, .all_rows = true},
                  stream, "bsr");
}

Decomposed dbsr(const CsrView& pattern, std::int64_t block_rows, std::int64_t block_columns,
                StreamView stream) {
  return one_part(pattern, {.block_rows = block_rows, .block_columns = block_columns}, stream,
                  "dbsr");
}

Decomposed sr_bcrs(const CsrView& pattern, std::int64_t rows, std::int64_t group,
                   StreamView stream) {
  return one_part(pattern, {.block_rows = rows, .multiple = group, .all_rows = true}, stream,
                  "sr_bcrs");
}

Decomposed csf(const CsrView& pattern, const EdgeTypes& types, StreamView stream) {
  PUMICE_EXPECTS(types.type.defined(), "csf: no types: give the type of each entry");
  return one_part(pattern, {}, stream, "csf", types);
}

Decomposed blocks(std::int64_t rows, std::int64_t columns, std::int64_t block_rows,
                  std::int64_t block_columns, ConstTensorView block_row_begin,
                  ConstTensorView block_column) {
  constexpr const char* kOp = "blocks";
  const PartShape shape{.block_rows = block_rows, .block_columns = block_columns, .all_rows = true};
  check_grid(rows, columns, shape, kOp);
  check_list(block_row_begin, kOp, "block_row_begin");
  check_list(block_column, kOp, "block_column");
  with_numbers(block_column, [&](auto numbers) {
    check_numbers(numbers, columns / block_columns, kOp, "block_column");
  });
  return whole(rows, columns,
               {.shape = shape,
                .row = {},
                .slot_begin = converted<std::int64_t>(block_row_begin, DType::i64),
                .column = converted<std::int32_t>(block_column, DType::i32),
                .entry = {},
                .type_begin = {}},
               kOp);
}

Decomposed block_mask(ConstTensorView mask, std::int64_t block_rows, std::int64_t block_columns) {
  constexpr const char* kOp = "block_mask";
  PUMICE_EXPECTS(
      mask.rank() == 2 && size_of(mask.dtype()) == 1 && mask.device().kind == DeviceKind::cpu, kOp,
      ": mask is ", name_of(mask.dtype()), ' ', to_string(mask.shape()), " on ",
      to_string(mask.device()), ": give [block rows, block columns] of bytes on the CPU");
  const auto* const set = static_cast<const std::uint8_t*>(mask.raw());
  const std::int64_t high = mask.extent(0), wide = mask.extent(1);
  const auto blocks = mask.elements() - std::count(set, set + mask.elements(), std::uint8_t{0});
  Part part{.shape = {.block_rows = block_rows, .block_columns = block_columns, .all_rows = true},
            .row = {},
            .slot_begin = Tensor({high + 1}, DType::i64),
            .column = Tensor({blocks}, DType::i32),
            .entry = {},
            .type_begin = {}};
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(block_rows >= 1 && block_columns >= 1 && high <= kMost / block_rows &&
                     wide <= kMost / block_columns,
                 kOp, ": ", high, " x ", wide, " blocks of ", block_rows, " x ", block_columns,
                 ": give blocks of at least 1 x 1, and at most 2147483647 rows and columns");
  std::int64_t slot = 0;
  for (std::int64_t row = 0; row < high; ++row) {
    part.slot_begin.data<std::int64_t>()[row] = slot;
    for (std::int64_t column = 0; column < wide; ++column)
      if (set[row * wide + column] != 0)
        part.column.data<std::int32_t>()[slot++] = static_cast<std::int32_t>(column);
  }
  part.slot_begin.data<std::int64_t>()[high] = slot;
  return whole(high * block_rows, wide * block_columns, std::move(part), kOp);
}

Decomposed decompose(const CsrView& pattern, std::span<const PartShape> shapes,
                     const std::function<std::int64_t(const Entry&)>& part_of,
                     const EdgeTypes& types) {
  constexpr const char* kOp = "decompose";
  check_cuttable(pattern, {}, kOp);
  check_parts(shapes, pattern, kOp);
  cpu::Assignment assignment{.part = Buffer<std::int32_t>(pattern.entries()),
                             .type = cpu::types_by_place(pattern, types, kOp),
                             .types = types.type.defined() ? types.count : 0};
  const auto parts = static_cast<std::int64_t>(shapes.size());
  for (std::int64_t row = 0; row < pattern.rows; ++row) {
    for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place) {
      const Entry entry{row, pattern.column[static_cast<std::size_t>(place)],
                        pattern.number_of(place), place};
      const std::int64_t part = part_of(entry);
      PUMICE_EXPECTS(part >= 0 && part < parts, kOp, ": entry ", entry.number, " at row ", row,
                     " and column ", entry.column, " is given to part ", part, " where there are ",
                     parts, ": give numbers from 0 on");
      assignment.part[place] = static_cast<std::int32_t>(part);
    }
  }
  return cpu::cut(pattern, shapes, assignment, kOp);
}

Decomposed decompose(const CsrView& pattern, std::span<const PartShape> shapes,
                     ConstTensorView part_of, const EdgeTypes& types, StreamView stream) {
  constexpr const char* kOp = "decompose";
  check_cuttable(pattern, stream, kOp);
  PUMICE_EXPECTS(part_of.dtype() == DType::i64 && part_of.rank() == 1 &&
                     part_of.rows() == pattern.entries() && part_of.device() == pattern.device,
                 kOp, ": parts are ", name_of(part_of.dtype()), ' ', to_string(part_of.shape()),
                 " on ", to_string(part_of.device()), ": give i64 [", pattern.entries(),
                 "], one for each entry, where the pattern is");
  check_parts(shapes, pattern, kOp);   // before any number is called none of them
  if (stream.device.kind == DeviceKind::cpu) {
    const std::span<const std::int64_t> part = part_of.span<std::int64_t>();
    return decompose(
        pattern, shapes,
        [&](const Entry& entry) { return part[static_cast<std::size_t>(entry.place)]; }, types);
  }
  jit::DeviceRunner runner = runner_on(stream);
  return cuda::cut(runner, pattern, shapes,
                   {.part = cuda::parts_by_place(runner, pattern, part_of,
                                                 static_cast<std::int64_t>(shapes.size()), kOp),
                    .type = cuda::types_by_place(runner, pattern, types, kOp),
                    .types = types.type.defined() ? types.count : 0},
                   kOp);
}

Decomposed decompose(const CsrView& pattern, std::vector<Part> parts) {
  constexpr const char* kOp = "decompose";
  check_cuttable(pattern, {}, kOp);
  Decomposed made(cpu::lists_of(pattern, std::move(parts)));
  validate(made, pattern, kOp);
  return made;
}

}   // namespace pumice::formats
