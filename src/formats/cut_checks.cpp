#include "formats/cut_checks.hpp"

#include <algorithm>
#include <limits>

#include <pumice/core/error.hpp>

namespace pumice {

void check_cuttable(const CsrView& pattern, StreamView stream, const char* op) {
  PUMICE_EXPECTS(pattern.device == stream.device, op, ": the pattern is on ",
                 to_string(pattern.device), " and the stream on ", to_string(stream.device),
                 ": give a stream of the pattern's device");
  PUMICE_EXPECTS(
      static_cast<std::int64_t>(pattern.row_begin.size()) == pattern.rows + 1 &&
          (pattern.device.kind != DeviceKind::cpu || pattern.row_begin.back() == pattern.entries()),
      op, ": a pattern of ", pattern.rows, " rows has ", pattern.row_begin.size(), " bounds and ",
      pattern.entries(), " columns: give the view of a Csr");
}

void check_types(const CsrView& pattern, const formats::EdgeTypes& types, const char* op) {
  if (!types.type.defined()) return;
  PUMICE_EXPECTS(types.type.rank() == 1 && types.type.rows() == pattern.entries() &&
                     (types.type.dtype() == DType::i32 || types.type.dtype() == DType::i64),
                 op, ": types are ", name_of(types.type.dtype()), ' ',
                 to_string(types.type.shape()), ": give i32 or i64 [", pattern.entries(),
                 "], one for each entry");
  PUMICE_EXPECTS(types.count >= 0 && types.count <= std::numeric_limits<std::int32_t>::max(), op,
                 ": ", types.count, " types: give 0 to 2147483647");
  PUMICE_EXPECTS(types.type.device() == pattern.device, op, ": types are on ",
                 to_string(types.type.device()), " and the pattern on ", to_string(pattern.device),
                 ": copy_to brings one to the other");
}

void check_parts(std::span<const PartShape> shapes, const CsrView& pattern, const char* op) {
  PUMICE_EXPECTS(!shapes.empty() || pattern.entries() == 0, op, ": no parts for ",
                 pattern.entries(), " entries: give a shape for each part");
}

void check_padding(std::int64_t slots, const PartShape& shape, std::int64_t entries,
                   const char* op) {
  constexpr std::int64_t kFewPositions = std::int64_t{1} << 26;
  const std::int64_t most =
      std::max(kFewPositions, kMostPositionsOfEntry * std::max<std::int64_t>(entries, 1));
  PUMICE_EXPECTS(slots <= most / shape.positions(), op, ": more than ", most, " positions for ",
                 entries,
                 " entries, nearly all of them padding: give a smaller width or smaller blocks, "
                 "or take hyb or dcsr");
}

}   // namespace pumice
