// A format of one's own for a sparse matrix: blocks along the diagonal, where entries are dense,
// and narrow lines for all others. The product is that of the matrix as it was.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include <pumice/core/random.hpp>
#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/part_products.hpp>

using namespace pumice;

int main() {
  constexpr std::int64_t kRows = 1000, kEntries = 20'000, kChannels = 32;
  Random random(1);
  Tensor row({kEntries}, DType::i32), column({kEntries}, DType::i32);
  for (std::int64_t e = 0; e < kEntries; ++e) {
    const std::int64_t at = random.integer(0, kRows - 1);
    const bool is_near = e % 4 != 0;
    row.data<std::int32_t>()[e] = static_cast<std::int32_t>(at);
    column.data<std::int32_t>()[e] = static_cast<std::int32_t>(
        is_near ? at / 8 * 8 + random.integer(0, 7) : random.integer(0, kRows - 1));
  }
  const Csr matrix(kRows, kRows, row, column);

  // Two parts, and which of them takes an entry. Numbers of entries stay what they were.
  const std::array<PartShape, 2> shapes{
      PartShape{.block_rows = 8, .block_columns = 8},   // doubly compressed blocks
      PartShape{.width = 4}};                           // ELL, longer rows in several lines
  const Decomposed parts = formats::decompose(
      matrix.view(), shapes,
      [](const formats::Entry& entry) { return entry.row / 8 == entry.column / 8 ? 0 : 1; });
  validate(parts, matrix.view());
  for (const PartView& part : parts.views())
    std::cout << part.lines() << " lines of " << part.slots() << " slots\n";

  Tensor x({kRows, kChannels}, DType::f32), values({kEntries}, DType::f32);
  for (float& value : x.span<float>())
    value = static_cast<float>(random.normal());
  for (float& value : values.span<float>())
    value = static_cast<float>(random.normal());
  const Tensor ours = spmm(parts, values, x).output;
  const Tensor whole = spmm(matrix.view(), values, x).output;
  double largest = 0;   // sums are added in another order
  for (std::size_t i = 0; i < ours.span<float>().size(); ++i)
    largest = std::max<double>(largest, std::abs(ours.span<float>()[i] - whole.span<float>()[i]));
  std::cout << (largest < 1e-3 ? "the same product\n" : "another product\n");
  return largest < 1e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
