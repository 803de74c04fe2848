// One pattern in every format there is, with types where a format has them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

/// The formats by name, with parameters that `seed` draws; those that are somebody's own too.
inline std::vector<NamedFormat> every_format(const CsrView& pattern, std::uint64_t seed) {
  Random random(seed, 3);
  const std::int64_t block = random.integer(1, 5), wide = random.integer(1, 5);
  const std::int64_t count = random.integer(1, 6);
  const Tensor type = random_types(pattern.entries(), count,
                                   random.integer(0, 1) == 0 ? DType::i32 : DType::i64, seed);
  // Of types that no edge has too.
  const formats::EdgeTypes types{type.view(), count + random.integer(0, 2)};
  const auto hyb = [&](std::int64_t shares, std::vector<std::int64_t> widths,
                       const formats::EdgeTypes& of = {}) {
    return formats::hyb(pattern, {.column_parts = shares, .widths = std::move(widths)}, of);
  };
  std::vector<NamedFormat> made;
  const auto add = [&](const char* name, Decomposed parts) {
    made.push_back({name, std::move(parts)});
  };
  add("identity", formats::identity(pattern));
  add("dcsr", formats::dcsr(pattern));
  add("padded_csr", formats::padded_csr(pattern, random.integer(1, 8)));
  // As wide as the longest row, which many rows cannot all be.
  if (pattern.rows < 100'000) add("ell", formats::ell(pattern));
  add("ell of a width", formats::ell(pattern, random.integer(1, 4)));
  add("hyb", formats::hyb(pattern));
  add("hyb(1, 2)", hyb(1, {1, 2, 4}));
  add("hyb(c, 1)", hyb(random.integer(1, 9), {1, 2}));
  add("hyb of wide parts", hyb(2, {3, 64}));
  add("bsr", formats::bsr(pattern, block, block));
  add("bsr of oblong blocks", formats::bsr(pattern, block, wide));
  add("dbsr", formats::dbsr(pattern, wide, block));
  add("sr_bcrs", formats::sr_bcrs(pattern, random.integer(1, 8), random.integer(1, 8)));
  add("csf", formats::csf(pattern, types));
  add("3-D hyb", hyb(1, {1, 2, 4}, types));
  add("3-D hyb in parts", hyb(random.integer(2, 3), {}, types));
  const std::vector<PartShape> own{{.width = 2},
                                   {},
                                   {.block_rows = block, .block_columns = wide, .width = 2},
                                   {.multiple = 4, .all_rows = true}};
  add("somebody's own", formats::decompose(pattern, own, [&](const formats::Entry& entry) {
        return (entry.row + entry.column * 3 + entry.number) % 4;
      }));
  add("somebody's own with types",
      formats::decompose(
          pattern, own, [](const formats::Entry& entry) { return entry.place % 4; }, types));
  return made;
}

}   // namespace pumice::test
