// Products over parts on a device beside loops over a list of entries in float64.
// Covers ops/cuda/part_products, kernels/cuda/part_launch and part_source, formats/cuda/part_table.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/part_products.hpp>

#include "formats/every_format.hpp"
#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/spmm_reference.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView();
}
Tensor there(const Tensor& tensor, const Stream& stream) {
  return tensor.defined() ? copy_to(stream, tensor) : Tensor();
}

bool is_of_single_entries(const Decomposed& parts) {
  return std::ranges::all_of(parts.views(),
                             [](const PartView& part) { return part.shape.positions() == 1; });
}

/// Row 0 of the features is NaN unless an entry leads there: padding reads it, and may not count.
void spoil_first_row(Tensor& x, const PatternCase& one) {
  if (x.rows() == 0 || std::ranges::find(one.column, 0) != one.column.end()) return;
  Tensor wide = x.to(DType::f64).clone();
  std::fill_n(wide.data<double>(), x.view().extent(1), std::numeric_limits<double>::quiet_NaN());
  x = wide.to(x.dtype());
}

/// Memory that nobody cleared.
Tensor dirty(Shape shape, DType dtype, const Stream& stream) {
  return Tensor::full(shape, dtype, dtype == DType::i64 ? 77 : std::nan(""), stream);
}

struct Problem {
  Problem(const PatternCase& of, const Kind& of_kind, std::int64_t channels,
          std::int64_t number_of_heads, bool weighted)
      : one(of),
        kind(of_kind),
        heads(number_of_heads),
        x(random_tensor({of.columns, channels}, of_kind.type, 1)),
        left(random_tensor({of.rows, channels}, of_kind.type, 2)),
        values(weighted ? random_tensor({of.entries(), number_of_heads}, of_kind.type, 3)
                        : Tensor()) {
    spoil_first_row(x, of);
  }

  const PatternCase& one;
  Kind kind;
  std::int64_t heads;
  Tensor x, left, values;
};

void check_products(const Problem& problem, const Decomposed& parts, const Reference& expected,
                    EntryReduction reduction, const Stream& stream) {
  const Shape shape{problem.one.rows, problem.x.extent(1)};
  Tensor output = dirty(shape, problem.kind.type, stream);
  Tensor source = dirty(shape, DType::i64, stream);
  const Tensor x = there(problem.x, stream), values = there(problem.values, stream);
  const SpmmResult got = spmm(parts, view_of(values), x, reduction,
                              {.output = Place(output), .source = Place(source)});
  expect_near(copy_to_host(got.output, stream), expected.output, problem.kind.tolerance, "output");
  if (picks(reduction)) {
    EXPECT_TRUE(same_bits(copy_to_host(got.source, stream), expected.source));
  }
}

void check(const Problem& problem, const std::vector<NamedFormat>& formats, const Stream& stream) {
  SCOPED_TRACE(problem.one.name + ", " + std::string(name_of(problem.kind.type)) + ", " +
               to_string(problem.x.shape()) + ", " + std::to_string(problem.heads) + " heads" +
               (problem.values.defined() ? "" : ", no values"));
  const Tensor wide_values = problem.values.defined() ? problem.values.to(DType::f64) : Tensor();
  const Tensor x = problem.x.to(DType::f64), left = problem.left.to(DType::f64);
  std::vector<Reference> expected;
  for (const EntryReduction reduction : kReductions)
    expected.emplace_back(problem.one, wide_values, x, left, problem.heads, reduction);
  const Tensor products = dots(problem.one, left, x, problem.heads);
  for (const NamedFormat& format : formats) {
    if (!is_of_single_entries(format.parts)) continue;
    SCOPED_TRACE(format.name);
    const Decomposed parts = copy_to(stream, format.parts);
    for (std::size_t r = 0; r < expected.size(); ++r)
      check_products(problem, parts, expected[r], kReductions[r], stream);
    const Tensor l = there(problem.left, stream), right = there(problem.x, stream);
    Tensor output = dirty({problem.one.entries(), problem.heads}, problem.kind.type, stream);
    expect_near(copy_to_host(sddmm(parts, l, right, problem.heads, Place(output)), stream),
                products, problem.kind.tolerance, "sddmm");
  }
}

/// Lines of more slots than a piece has, in parts with a width and without.
PatternCase long_rows() {
  PatternCase made{"long rows", 9, 400, {}, {}};
  const std::int64_t lengths[] = {1, 256, 257, 0, 1025, 2, 600, 255, 3};
  for (std::int64_t row = 0; row < 9; ++row) {
    for (std::int64_t e = 0; e < lengths[row]; ++e) {
      made.row.push_back(row);
      made.column.push_back((e * 7 + row) % 399 + 1);
    }
  }
  return made;
}

std::vector<PatternCase> cases() {
  std::vector<PatternCase> all = pattern_cases();
  if (on_emulator()) all.erase(all.end() - 2, all.end());
  return all;
}

TEST(PartProductsGpu, are_what_their_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::uint64_t seed = 5;
  for (const PatternCase& one : cases()) {
    const Csr pattern = one.csr();
    const std::vector<NamedFormat> formats = every_format(pattern.view(), ++seed);
    for (const Kind& kind : kKinds) {
      if (kind.type == DType::f64 || (on_emulator() && kind.type != DType::f32)) continue;
      check({one, kind, 6, 1, true}, formats, stream);
      if (!on_emulator()) check({one, kind, 16, 2, true}, formats, stream);
    }
  }
}

TEST(PartProductsGpu, take_parts_that_were_cut_there) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(50, 40, 400, 8);
  const Csr here = one.csr();
  const Csr there = copy_to(stream, here.view());
  const Problem problem{one, {DType::f32, 2e-5}, 6, 1, true};
  const Tensor x = problem.x.to(DType::f64), left = problem.left.to(DType::f64);
  for (const NamedFormat& format : every_format(here.view(), 9, {there.view(), stream})) {
    if (!is_of_single_entries(format.parts)) continue;
    SCOPED_TRACE(format.name);
    for (const EntryReduction reduction : kReductions)
      check_products(problem, format.parts,
                     {one, problem.values.to(DType::f64), x, left, 1, reduction}, reduction,
                     stream);
  }
}

TEST(PartProductsGpu, cut_long_lines) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = long_rows();
  const Csr pattern = one.csr();
  std::vector<NamedFormat> formats;
  formats.push_back({"dcsr", formats::dcsr(pattern.view())});
  formats.push_back({"identity", formats::identity(pattern.view())});
  formats.push_back({"ell", formats::ell(pattern.view())});
  formats.push_back({"hyb", formats::hyb(pattern.view(), {.widths = {2, 300}})});
  for (const bool weighted : {true, false})
    check({one, {DType::f32, 1e-4}, 5, 1, weighted}, formats, stream);
  check({one, {DType::f16, 4e-3}, 24, 3, true}, formats, stream);
}

TEST(PartProductsGpu, pick_the_first_in_the_order_of_the_pattern) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  // A transpose, whose numbers do not ascend within rows; everything is equal.
  const PatternCase one = random_pattern(20, 12, 300, 3);
  const Csr pattern = one.csr();
  const Csr back = transposed(pattern.view());
  const Tensor x = Tensor::full({20, 5}, DType::f32, 1);
  const Tensor on_device = copy_to(stream, x);
  for (const EntryReduction reduction : {EntryReduction::max, EntryReduction::min}) {
    const SpmmResult expected = spmm(back.view(), {}, x, reduction);
    for (const NamedFormat& format : every_format(back.view(), 12)) {
      if (!is_of_single_entries(format.parts)) continue;
      SCOPED_TRACE(format.name);
      const Decomposed parts = copy_to(stream, format.parts);
      const SpmmResult got = spmm(parts, {}, on_device, reduction);
      EXPECT_TRUE(same_bits(copy_to_host(got.source, stream), expected.source));
      EXPECT_TRUE(same_bits(copy_to_host(got.output, stream), expected.output));
    }
  }
}

/// A row without entries is +0 of every reduction; of a row of -0 the minimum is -0.
TEST(PartProductsGpu, rows_without_entries_have_no_sign) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  PatternCase one = random_pattern(40, 30, 60, 9);
  for (std::int64_t& row : one.row)
    row = row / 2 * 2;
  const Csr pattern = one.csr();
  const Csr on_device = copy_to(stream, pattern.view());
  const Tensor zero = Tensor::full({30, 8}, DType::f32, -0.0);
  const Tensor x = copy_to(stream, zero);
  const Tensor none = Tensor::full({40, 8}, DType::f32, 0.0);
  for (const EntryReduction reduction : kReductions) {
    const Tensor expected = spmm(pattern.view(), {}, zero, reduction).output;
    const auto expect_signs = [&](const Tensor& there, const std::string& name) {
      const Tensor got = copy_to_host(there, stream);
      for (std::int64_t row = 0; row < 40; ++row) {
        const bool is_empty = pattern.view().begin_of(row) == pattern.view().end_of(row);
        for (std::int64_t c = row * 8; c < row * 8 + 8; ++c) {
          if (is_empty || picks(reduction)) {
            EXPECT_EQ(std::signbit(got.data<float>()[c]), !is_empty) << name << ", row " << row;
          }
        }
      }
    };
    expect_signs(spmm(on_device.view(), {}, x, reduction).output, "rows");
    for (const NamedFormat& format : every_format(pattern.view(), 3)) {
      if (!is_of_single_entries(format.parts)) continue;
      expect_signs(spmm(copy_to(stream, format.parts), {}, x, reduction).output, format.name);
    }
    EXPECT_EQ(same_bits(expected, none), !picks(reduction)) << "as the CPU has it";
  }
}

TEST(PartProductsGpu, give_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one =
      on_emulator() ? random_pattern(60, 50, 2000, 4) : random_pattern(3000, 2000, 90'000, 4);
  const Csr pattern = one.csr();
  const Tensor x = copy_to(stream, random_tensor({one.columns, 24}, DType::f32, 1));
  const Decomposed here = formats::hyb(pattern.view(), {.column_parts = 3, .widths = {1, 2, 4}});
  const Decomposed parts = copy_to(stream, here);
  const Tensor first = copy_to_host(spmm(parts, {}, x).output, stream);
  for (int time = 0; time < (on_emulator() ? 2 : 100); ++time) {
    const Decomposed again = copy_to(stream, here);
    EXPECT_TRUE(same_bits(copy_to_host(spmm(again, {}, x).output, stream), first));
  }
}

TEST(PartProductsGpu, refuse_blocks_and_what_lies_elsewhere) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(6, 8, 20, 1);
  const Csr pattern = one.csr();
  const Decomposed here = formats::bsr(pattern.view(), 2, 4);
  const Decomposed there = copy_to(stream, here);
  const Tensor x = Tensor::zeros({8, 4}, DType::f32), on_device = copy_to(stream, x);
  const Tensor left = copy_to(stream, Tensor::zeros({6, 4}, DType::f32));
  const std::string rest =
      ": part 0 has blocks of 2 x 4, over which products run on the CPU; on a device give parts of "
      "single entries, as hyb, ell, dcsr and csf make, or the pattern itself";
  EXPECT_EQ(message_of([&] { spmm(there, {}, on_device); }), "spmm" + rest);
  EXPECT_EQ(message_of([&] { sddmm(there, left, on_device); }), "sddmm" + rest);
  EXPECT_EQ(message_of([&] { spmm(there, {}, x); }),
            "spmm: features is on cpu and the pattern on cuda:0: copy_to brings one to the other");
  const Decomposed hyb = copy_to(stream, formats::hyb(pattern.view()));
  EXPECT_NE(message_of([&] {
              spmm(hyb, {}, copy_to(stream, Tensor::zeros({8, 4}, DType::f64)));
            }).find("which CUDA kernels do not compute in"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::test
