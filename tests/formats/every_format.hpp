// One pattern in every format there is, with types where a format has them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/formats/decompositions.hpp>

namespace pumice::test {

struct NamedFormat {
  std::string name;
  Decomposed parts;
};

inline Tensor random_types(std::int64_t entries, std::int64_t types, DType dtype,
                           std::uint64_t seed) {
  Tensor made({entries}, dtype);
  Random random(seed);
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::int64_t type = random.integer(0, types - 1);
    if (dtype == DType::i64) {
      made.data<std::int64_t>()[e] = type;
    } else {
      made.data<std::int32_t>()[e] = static_cast<std::int32_t>(type);
    }
  }
  return made;
}

/// Where a pattern is cut: on the CPU, or a copy of it on a device.
struct CutWhere {
  const CsrView& pattern;   // there
  StreamView stream{};
};

/// Somebody's own, of what is said of each entry of the pattern on the CPU.
inline Decomposed own_format(const CsrView& pattern, const CutWhere& where,
                             std::span<const PartShape> shapes,
                             const std::function<std::int64_t(const formats::Entry&)>& part_of,
                             const formats::EdgeTypes& types = {}) {
  if (where.stream.device.kind == DeviceKind::cpu)
    return formats::decompose(pattern, shapes, part_of, types);
  Tensor part({pattern.entries()}, DType::i64);
  for (std::int64_t row = 0; row < pattern.rows; ++row)
    for (std::int64_t place = pattern.begin_of(row); place < pattern.end_of(row); ++place)
      part.data<std::int64_t>()[place] = part_of(
          {row, pattern.column[static_cast<std::size_t>(place)], pattern.number_of(place), place});
  return formats::decompose(where.pattern, shapes, copy_to(where.stream, part), types,
                            where.stream);
}

/// The formats by name, with parameters that `seed` draws; those that are somebody's own too.
/// `here`: the pattern on the CPU.
inline std::vector<NamedFormat> every_format(const CsrView& here, std::uint64_t seed,
                                             const CutWhere& where) {
  const CsrView& pattern = where.pattern;
  const StreamView stream = where.stream;
  Random random(seed, 3);
  const std::int64_t block = random.integer(1, 5), wide = random.integer(1, 5);
  const std::int64_t count = random.integer(1, 6);
  const Tensor type = random_types(pattern.entries(), count,
                                   random.integer(0, 1) == 0 ? DType::i32 : DType::i64, seed);
  const Tensor type_there = copy_to(stream, type);
  // Of types that no edge has too.
  const formats::EdgeTypes types{type_there.view(), count + random.integer(0, 2)};
  const auto hyb = [&](std::int64_t shares, std::vector<std::int64_t> widths,
                       const formats::EdgeTypes& of = {}) {
    return formats::hyb(pattern, {.column_parts = shares, .widths = std::move(widths)}, of, stream);
  };
  std::vector<NamedFormat> made;
  const auto add = [&](const char* name, Decomposed parts) {
    made.push_back({name, std::move(parts)});
  };
  add("identity", formats::identity(pattern, stream));
  add("dcsr", formats::dcsr(pattern, stream));
  add("padded_csr", formats::padded_csr(pattern, random.integer(1, 8), stream));
  // As wide as the longest row, which many rows cannot all be.
  if (pattern.rows < 100'000) add("ell", formats::ell(pattern, 0, stream));
  add("ell of a width", formats::ell(pattern, random.integer(1, 4), stream));
  add("hyb", formats::hyb(pattern, {}, {}, stream));
  add("hyb(1, 2)", hyb(1, {1, 2, 4}));
  add("hyb(c, 1)", hyb(random.integer(1, 9), {1, 2}));
  add("hyb of wide parts", hyb(2, {3, 64}));
  add("bsr", formats::bsr(pattern, block, block, stream));
  add("bsr of oblong blocks", formats::bsr(pattern, block, wide, stream));
  add("dbsr", formats::dbsr(pattern, wide, block, stream));
  add("sr_bcrs", formats::sr_bcrs(pattern, random.integer(1, 8), random.integer(1, 8), stream));
  add("csf", formats::csf(pattern, types, stream));
  add("3-D hyb", hyb(1, {1, 2, 4}, types));
  add("3-D hyb in parts", hyb(random.integer(2, 3), {}, types));
  const std::vector<PartShape> own{{.width = 2},
                                   {},
                                   {.block_rows = block, .block_columns = wide, .width = 2},
                                   {.multiple = 4, .all_rows = true}};
  add("somebody's own", own_format(here, where, own, [&](const formats::Entry& entry) {
        return (entry.row + entry.column * 3 + entry.number) % 4;
      }));
  add("somebody's own with types",
      own_format(
          here, where, own, [](const formats::Entry& entry) { return entry.place % 4; }, types));
  return made;
}

inline std::vector<NamedFormat> every_format(const CsrView& pattern, std::uint64_t seed) {
  return every_format(pattern, seed, {pattern});
}

}   // namespace pumice::test
