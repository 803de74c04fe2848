// Products of sparse matrices on a device beside loops over a list of entries in float64.
// Covers ops/cuda/sparse_products, kernels/cuda/entry_launch and graphs/cuda/balance.
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/spmm.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/cuda/entry_launch.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/problem.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/spmm_reference.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

Tensor there(const Tensor& tensor, const Stream& stream) {
  return tensor.defined() ? copy_to(stream, tensor) : Tensor();
}
ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView();
}

/// One product and its gradients on both sides.
struct Problem {
  Problem(const PatternCase& of, DType type, std::int64_t channels, std::int64_t number_of_heads,
          bool weighted)
      : one(of),
        heads(number_of_heads),
        x(random_tensor({of.columns, channels}, type, 1)),
        g(random_tensor({of.rows, channels}, type, 2)),
        values(weighted ? random_tensor({of.entries(), number_of_heads}, type, 3) : Tensor()) {}

  const PatternCase& one;
  std::int64_t heads;
  Tensor x, g, values;
};

struct Results {
  Tensor output, source, features_gradient, values_gradient;

  Results(const Problem& problem, EntryReduction reduction, const Stream& stream) {
    const Csr csr = problem.one.csr();
    const Csr back = transposed(csr.view());
    const Csr forward = copy_to(stream, csr.view()), backwards = copy_to(stream, back.view());
    const Tensor x = there(problem.x, stream), g = there(problem.g, stream),
                 values = there(problem.values, stream);
    const SpmmResult made = spmm(forward.view(), view_of(values), x, reduction);
    const ConstTensorView picked = view_of(made.source);
    output = copy_to_host(made.output, stream);
    if (picked.defined()) source = copy_to_host(made.source, stream);
    features_gradient = copy_to_host(spmm_features_gradient(forward.view(), backwards.view(),
                                                            view_of(values), g, picked, reduction),
                                     stream);
    values_gradient = copy_to_host(
        spmm_values_gradient(forward.view(), x, g, problem.heads, picked, reduction), stream);
  }
};

void check(const Problem& problem, const Kind& kind, EntryReduction reduction,
           const Stream& stream) {
  SCOPED_TRACE(problem.one.name + ", " + std::string(name_of(kind.type)) + ", " +
               to_string(problem.x.shape()) + ", " + std::to_string(problem.heads) + " heads, " +
               (problem.values.defined() ? "" : "no values, ") + "reduction " +
               std::to_string(static_cast<int>(reduction)));
  const Reference expected(
      problem.one, problem.values.defined() ? problem.values.to(DType::f64) : Tensor(),
      problem.x.to(DType::f64), problem.g.to(DType::f64), problem.heads, reduction);
  const Results got(problem, reduction, stream);
  expect_near(got.output, expected.output, kind.tolerance, "output");
  if (picks(reduction)) {
    EXPECT_TRUE(same_bits(got.source, expected.source));
  }
  expect_near(got.features_gradient, expected.features_gradient, kind.tolerance,
              "gradient of the features");
  expect_near(got.values_gradient, expected.values_gradient, kind.tolerance,
              "gradient of the values");
}

/// Rows of so many entries, over and over.
PatternCase rows_of(std::string name, std::int64_t rows, std::span<const std::int64_t> lengths) {
  PatternCase made{std::move(name), rows, 40, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = lengths[static_cast<std::size_t>(row) % lengths.size()];
    for (std::int64_t e = 0; e < length; ++e) {
      made.row.push_back(row);
      made.column.push_back((e * 7 + row) % 40);
    }
  }
  return made;
}

/// Of about one part of 64 entries, of two and of several.
PatternCase rows_around_a_part() {
  const std::int64_t lengths[] = {1, 64, 65, 0, 1025, 63, 1536};
  return rows_of("rows around a part", 7, lengths);
}

TEST(SpmmGpu, is_what_its_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<PatternCase> cases = pattern_cases();
  cases.push_back(rows_around_a_part());
  if (on_emulator()) cases.pop_back(), cases.erase(cases.end() - 2, cases.end());
  for (const PatternCase& one : cases) {
    for (const Kind& kind : kKinds) {
      if (kind.type == DType::f64 || (on_emulator() && kind.type == DType::bf16)) continue;
      for (const EntryReduction reduction : kReductions) {
        check({one, kind.type, 6, 1, true}, kind, reduction, stream);
        check({one, kind.type, 6, 3, true}, kind, reduction, stream);
        check({one, kind.type, 5, 1, false}, kind, reduction, stream);
      }
    }
  }
}

TEST(SpmmGpu, cuts_long_rows) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = rows_around_a_part();
  for (const EntryReduction reduction : kReductions) {
    for (const std::int64_t channels : {1, 16}) {
      check({one, DType::f32, channels, 1, true}, {DType::f32, 1e-4}, reduction, stream);
      check({one, DType::f16, channels, 1, false}, {DType::f16, 4e-3}, reduction, stream);
    }
  }
}

TEST(SpmmGpu, adds_sums_and_means_to_what_is_there) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = rows_around_a_part();
  const Csr csr = one.csr();
  const Csr forward = copy_to(stream, csr.view());
  for (const Kind& kind : {kKinds[1], Kind{DType::f16, 4e-3}}) {
    for (const EntryReduction reduction : {EntryReduction::sum, EntryReduction::mean}) {
      for (const std::int64_t channels : {1, 16, 33}) {
        SCOPED_TRACE(std::string(name_of(kind.type)) + ", " + std::to_string(channels));
        const Problem problem(one, kind.type, channels, 1, channels == 16);
        const Tensor shift = random_tensor({channels}, DType::f32, 4);
        const Tensor residual = random_tensor({one.rows, channels}, kind.type, 5);
        const Reference expected(
            one, problem.values.defined() ? problem.values.to(DType::f64) : Tensor(),
            problem.x.to(DType::f64), problem.g.to(DType::f64), 1, reduction);
        const Tensor x = there(problem.x, stream), values = there(problem.values, stream);
        const Tensor shift_there = there(shift, stream), place = there(residual, stream);
        const auto product = [&](const RowAddends& added, const Place& output) {
          return copy_to_host(spmm(forward.view(), view_of(values), x, reduction,
                                   {.output = output}, nullptr, added)
                                  .output,
                              stream);
        };
        expect_near(product({.shift = shift_there}, {}), with_added(expected.output, shift, {}),
                    3 * kind.tolerance, "shifted");
        expect_near(product({.shift = shift_there, .residual = place}, place),
                    with_added(expected.output, shift, residual), 3 * kind.tolerance, "in place");
      }
    }
  }
}

// Runs begin and end anywhere among short rows, empty ones and ones that are passed over.
TEST(SpmmGpu, takes_rows_in_runs) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const std::int64_t lengths[] = {0,  3, 1, 0, 0, 0, 7, 65, 2, 64, 0, 130, 8,   1, 0, 0,
                                  12, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,   300, 4, 5, 0};
  for (const std::int64_t rows : {32, 33, 700, 60'000}) {
    if (on_emulator() && rows > 1000) continue;
    const PatternCase one = rows_of("runs", rows, lengths);
    for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::min}) {
      check({one, DType::f32, 12, 1, true}, kKinds[1], reduction, stream);
      check({one, DType::f16, 40, 1, false}, {DType::f16, 4e-3}, reduction, stream);
    }
  }
}

TEST(SpmmGpu, takes_any_number_of_channels) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(40, 30, 300, 5);
  std::vector<std::int64_t> all{0,  1,  7,   8,   15,  16,  17,  31,  32,
                                33, 64, 128, 129, 256, 260, 512, 515, 1100};
  if (on_emulator()) all = {0, 7, 33, 260, 1100};
  for (const std::int64_t channels : all) {
    for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::max}) {
      check({one, DType::f32, channels, 1, true}, kKinds[1], reduction, stream);
      if (!on_emulator())
        check({one, DType::bf16, channels, 1, false}, kKinds[3], reduction, stream);
    }
  }
}

TEST(SpmmGpu, gives_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one =
      on_emulator() ? rows_around_a_part() : random_pattern(300, 200, 400'000, 6);
  const Problem problem(one, DType::f32, 8, 2, true);
  for (const EntryReduction reduction : {EntryReduction::sum, EntryReduction::max}) {
    const Results first(problem, reduction, stream);
    for (int time = 0; time < (on_emulator() ? 2 : 100); ++time) {
      const Results again(problem, reduction, stream);
      ASSERT_TRUE(same_bits(again.output, first.output));
      ASSERT_TRUE(same_bits(again.features_gradient, first.features_gradient));
      ASSERT_TRUE(same_bits(again.values_gradient, first.values_gradient));
    }
  }
}

TEST(SpmmGpu, reads_no_row_that_no_entry_names) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one{"", 3, 3, {0, 2}, {1, 1}};
  Tensor x = Tensor::full({3, 4}, DType::f32, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t c = 4; c < 8; ++c)
    x.span<float>()[c] = 2;
  Tensor dirty = there(Tensor::full({3, 4}, DType::f32, 7), stream);   // nobody cleared it
  const Csr csr = one.csr();
  const Csr forward = copy_to(stream, csr.view());
  const Tensor features = there(x, stream);
  const SpmmResult got =
      spmm(forward.view(), {}, features, EntryReduction::sum, {.output = Place(dirty)});
  Tensor expected = Tensor::full({3, 4}, DType::f32, 2);
  for (std::size_t c = 4; c < 8; ++c)
    expected.span<float>()[c] = 0;
  EXPECT_TRUE(same_bits(copy_to_host(got.output, stream), expected));
}

TEST(SpmmGpu, gradients_of_a_sum_read_no_source) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 3, 9, 1);
  const Csr csr = one.csr(), back = transposed(csr.view());
  const Csr forward = copy_to(stream, csr.view()), backwards = copy_to(stream, back.view());
  const Tensor g = there(random_tensor({4, 6}, DType::f32, 1), stream);
  const Tensor picked = there(Tensor::full({4, 6}, DType::i64, -1), stream);
  const auto gradient = [&](ConstTensorView source) {
    return copy_to_host(spmm_features_gradient(forward.view(), backwards.view(), {}, g, source),
                        stream);
  };
  EXPECT_TRUE(same_bits(gradient(picked), gradient({})));
}

TEST(SddmmGpu, is_the_dot_product_of_the_rows_of_each_entry) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<PatternCase> cases = pattern_cases();
  if (on_emulator()) cases.resize(8);
  cases.push_back(rows_around_a_part());
  for (const PatternCase& one : cases) {
    const Csr csr = one.csr();
    const Csr pattern = copy_to(stream, csr.view());
    for (const Kind& kind : kKinds) {
      if (kind.type == DType::f64 || (on_emulator() && kind.type == DType::bf16)) continue;
      for (const std::int64_t channels : {0, 6, 33, 96, 768}) {
        const std::int64_t heads = channels == 33 ? 1 : 3;
        const Tensor left = random_tensor({one.rows, channels}, kind.type, 1);
        const Tensor right = random_tensor({one.columns, channels}, kind.type, 2);
        SCOPED_TRACE(one.name + ", " + std::to_string(channels));
        const Tensor l = there(left, stream), r = there(right, stream);
        expect_near(copy_to_host(sddmm(pattern.view(), l, r, heads), stream),
                    dots(one, left.to(DType::f64), right.to(DType::f64), heads), 3 * kind.tolerance,
                    "values");
      }
    }
  }
}

// Windows of 32 rows and entries begin and end anywhere, in rows and among empty ones, and at the
// end of all.
TEST(SddmmGpu, takes_rows_in_windows) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const std::int64_t lengths[] = {0,  3, 1, 0, 0, 0, 7, 65, 2, 64, 0, 130, 8,   1, 0, 0,
                                  12, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,   300, 4, 5, 0};
  for (const std::int64_t rows : {1, 2, 8, 31, 32, 33, 64, 700, 60'000}) {
    if (on_emulator() && rows > 100) continue;
    const PatternCase one = rows_of("windows", rows, lengths);
    const Csr csr = one.csr();
    const Csr pattern = copy_to(stream, csr.view());
    CsrView without_units = pattern.view();
    without_units.unit_row = {};
    without_units.long_rows = {};
    const Tensor left = random_tensor({rows, 12}, DType::f32, 1);
    const Tensor right = random_tensor({one.columns, 12}, DType::f32, 2);
    const Tensor l = there(left, stream), r = there(right, stream);
    const Tensor found = copy_to_host(sddmm(pattern.view(), l, r), stream);
    SCOPED_TRACE(rows);
    expect_near(found, dots(one, left.to(DType::f64), right.to(DType::f64), 1), 1e-5, "values");
    EXPECT_TRUE(same_bits(copy_to_host(sddmm(without_units, l, r), stream), found));
  }
}

TEST(SddmmGpu, is_the_same_by_any_specification) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = rows_around_a_part();
  const Csr csr = one.csr();
  const Csr pattern = copy_to(stream, csr.view());
  for (const DType type : {DType::f32, DType::f16}) {
    if (on_emulator() && type == DType::f16) continue;
    for (const std::int64_t channels : {32, 260}) {
      const Tensor left = random_tensor({one.rows, channels}, type, 1);
      const Tensor right = random_tensor({one.columns, channels}, type, 2);
      const Tensor expected = dots(one, left.to(DType::f64), right.to(DType::f64), 1);
      const Tensor l = there(left, stream), r = there(right, stream);
      const auto check_spec = [&](EdgeMapSpec spec) {
        spec.wide = channels > std::int64_t{spec.schedule.team} * spec.schedule.chunks *
                                   entry_chunk(spec.type);
        SCOPED_TRACE(cuda::entry_name(spec));
        ASSERT_EQ(why_invalid(spec), nullptr);
        Tensor output = there(Tensor::full({one.entries(), 1}, type, 7), stream);
        jit::DeviceRunner runner = cuda::runner_for(l);
        cuda::launch_edge_dot(
            runner, {.pattern = pattern.view(), .left = l, .right = r, .output = output.view()},
            spec);
        expect_near(copy_to_host(output, stream), expected, type == DType::f32 ? 1e-4 : 8e-3,
                    "values");
      };
      const EdgeMapSpec chosen = cuda::edge_dot_spec(
          type == DType::f32 ? ElementType::f32 : ElementType::f16, channels, false);
      for (const int ahead : {1, 2, 4, 8}) {
        EdgeMapSpec spec = chosen;
        if (ahead > spec.schedule.team) continue;
        spec.schedule.ahead = ahead;
        spec.schedule.chunks = ahead == 4 ? 2 : 1;
        spec.warps = 24;
        check_spec(spec);
      }
    }
  }
}

TEST(SpmmGpu, refuses_what_lies_elsewhere_and_types_without_kernels) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(4, 3, 5, 1);
  const Csr csr = one.csr();
  const Csr forward = copy_to(stream, csr.view());
  const Tensor here = Tensor::zeros({3, 6}, DType::f32);
  EXPECT_EQ(message_of([&] { spmm(forward.view(), {}, here); }),
            "spmm: features is on cpu and the pattern on cuda:0: copy_to brings one to the other");
  const Tensor x = there(here, stream);
  const Tensor g = there(Tensor::zeros({4, 6}, DType::f32), stream);
  const Tensor picked = Tensor::full({4, 6}, DType::i64, -1);
  EXPECT_EQ(
      message_of(
          [&] { spmm_values_gradient(forward.view(), x, g, 1, picked, EntryReduction::max); }),
      "spmm_values_gradient: source is on cpu and the pattern on cuda:0: copy_to brings one to "
      "the other");
  const Tensor wide = there(Tensor::zeros({3, 6}, DType::f64), stream);
  EXPECT_NE(message_of([&] { spmm(forward.view(), {}, wide); }).find("features holds f64"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { transposed(forward.view()); }),
            "transposed: the pattern is on cuda:0 and the stream on cpu: give a stream of the "
            "pattern's device");
  EXPECT_EQ(message_of([&] { check_pattern(forward.view(), "test"); }),
            "test: the pattern is on cuda:0: give one on the CPU");
}

}   // namespace
}   // namespace pumice::test
