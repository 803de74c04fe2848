// Products of sparse matrices by whole warps beside loops over a list of entries in float64.
// Covers skeleton/gather_warp, kernels/cuda/arrival_sets and the counters of graphs/cuda/balance.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/stream_heap.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "core/cuda/graph.hpp"
#include "graphs/random_pattern.hpp"
#include "kernels/cuda/arrival_sets.hpp"
#include "kernels/problem.hpp"
#include "ops/sparse_calls.hpp"
#include "ops/spmm_reference.hpp"
#include "support/gpu.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// One product, its operands on a device.
struct Product {
  Product(PatternCase of, DType type, std::int64_t channels, std::int64_t number_of_heads,
          EntryReduction how, const Stream& on)
      : one(std::move(of)),
        heads(number_of_heads),
        reduction(how),
        stream(on),
        x(random_tensor({one.columns, channels}, type, 1)),
        g(random_tensor({one.rows, channels}, type, 2)),
        values(heads > 0 ? random_tensor({one.entries(), heads}, type, 3) : Tensor()),
        expected(one, heads > 0 ? values.to(DType::f64) : Tensor(), x.to(DType::f64),
                 g.to(DType::f64), std::max<std::int64_t>(heads, 1), reduction) {
    const Csr csr = one.csr(), back = transposed(csr.view());
    forward = copy_to(stream, csr.view());
    backwards = copy_to(stream, back.view());
    x_there = copy_to(stream, x);
    g_there = copy_to(stream, g);
    if (heads > 0) values_there = copy_to(stream, values);
    if (picks(reduction)) source_there = copy_to(stream, expected.source);
  }

  ConstTensorView weights() const { return heads > 0 ? values_there.view() : ConstTensorView(); }

  SparsePlan plan(SparseDirection direction, std::int32_t ahead, std::int32_t units) const {
    SparseProblem problem =
        sparse_problem(SparseOperator::spmm, direction, forward.view(), x.dtype(),
                       x.view().extent(1), std::max<std::int64_t>(heads, 1));
    SparsePlan made = *choose_by_rules(problem, target_of(kGpu));
    made.teams->ways = 32 / made.teams->team;
    made.teams->ahead = std::min(ahead, made.teams->team);   // 32 rows of a warp at the most
    made.teams->units = units;
    return made;
  }

  void check(std::int32_t ahead, std::int32_t units, double tolerance) const {
    SCOPED_TRACE(one.name + ", " + std::string(name_of(x.dtype())) + ", " + to_string(x.shape()) +
                 ", " + std::to_string(heads) + " heads, ahead " + std::to_string(ahead) +
                 ", units " + std::to_string(units) + ", reduction " +
                 std::to_string(static_cast<int>(reduction)));
    const SparsePlan by = plan(SparseDirection::forward, ahead, units);
    if (!picks(reduction) || by.teams->ways == 1) {
      const SpmmResult got = spmm(forward.view(), weights(), x_there, reduction, {}, &by);
      expect_near(copy_to_host(got.output, stream), expected.output, tolerance, "output");
      if (picks(reduction)) {
        EXPECT_TRUE(same_bits(copy_to_host(got.source, stream), expected.source));
      }
    }
    const SparsePlan back = plan(SparseDirection::features_gradient, ahead, units);
    const ConstTensorView source = picks(reduction) ? source_there.view() : ConstTensorView();
    expect_near(copy_to_host(spmm_features_gradient(forward.view(), backwards.view(), weights(),
                                                    g_there, source, reduction, {}, &back),
                             stream),
                expected.features_gradient, tolerance, "gradient of the features");
  }

  PatternCase one;
  std::int64_t heads;   // 0: no values
  EntryReduction reduction;
  const Stream& stream;
  Tensor x, g, values;
  Reference expected;
  Csr forward, backwards;
  Tensor x_there, g_there, values_there, source_there;
};

/// Rows of so many entries, over and over, in any order of their numbers.
PatternCase rows_of(std::string name, std::int64_t rows, const std::vector<std::int64_t>& lengths,
                    bool ordered = true) {
  PatternCase made{std::move(name), rows, 40, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = ordered ? i : rows - 1 - i;
    const std::int64_t length = lengths[static_cast<std::size_t>(row) % lengths.size()];
    for (std::int64_t e = 0; e < length; ++e) {
      made.row.push_back(row);
      made.column.push_back((e * 7 + row) % 40);
    }
  }
  return made;
}

/// Of about one part of 64 entries, of two and of several.
PatternCase around_a_part(bool ordered = true) {
  return rows_of("rows around a part", 7, {1, 64, 65, 0, 1025, 63, 1536}, ordered);
}

TEST(SpmmGpu, is_what_its_definition_says_by_whole_warps) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<PatternCase> cases = pattern_cases();
  if (on_emulator()) cases.pop_back(), cases.pop_back();
  for (const PatternCase& one : cases) {
    for (const EntryReduction reduction : kReductions) {
      Product(one, DType::f32, 6, 1, reduction, stream).check(2, 2, 2e-5);
      if (on_emulator() && reduction != EntryReduction::mean) continue;
      Product(one, DType::f16, 32, 0, reduction, stream).check(4, 4, 4e-3);
      Product(one, DType::f32, 33, 3, reduction, stream).check(4, 1, 2e-5);
    }
  }
}

// Rows end anywhere in batches and windows; empty ones stand in runs of more than 32, and long ones
// are passed over.
TEST(SpmmGpu, takes_rows_in_runs_by_whole_warps) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  std::vector<std::int64_t> lengths{0, 3, 1,  0, 0, 0, 7, 65, 2, 64, 0,  130, 8,  1,
                                    0, 0, 12, 0, 0, 0, 0, 0,  5, 33, 31, 32,  16, 17};
  lengths.resize(lengths.size() + 70);   // empty
  lengths.insert(lengths.end(), {300, 4, 5, 0});
  for (const std::int64_t rows : {31, 32, 33, 205, 60'000}) {
    if (on_emulator() && rows > 1000) continue;
    const PatternCase one = rows_of("runs", rows, lengths, rows % 2 == 0);
    for (const std::int32_t units : {0, 1, 16, 64}) {
      if (on_emulator() && units == 1 && rows > 33) continue;
      Product(one, DType::f32, 32, 1, EntryReduction::mean, stream).check(4, units, 2e-5);
      Product(one, DType::f16, 40, 0, EntryReduction::sum, stream).check(8, units, 4e-3);
    }
  }
}

TEST(SpmmGpu, takes_any_number_of_channels_by_whole_warps) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = random_pattern(40, 30, 300, 5);
  for (const std::int64_t channels : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 128, 129, 260, 515}) {
    if (on_emulator() && channels % 2 == 0 && channels % 16 != 0 && channels != 260) continue;
    const std::int32_t ahead = channels % 2 == 0 ? 8 : 2;
    Product(one, DType::f32, channels, 1, EntryReduction::sum, stream).check(ahead, 2, 2e-5);
    Product(one, DType::bf16, channels, 0, EntryReduction::mean, stream).check(4, 2, 2e-2);
    if (channels > 64 && channels % 4 == 0) {
      Product(one, DType::f32, channels, 4, EntryReduction::max, stream).check(ahead, 2, 2e-5);
      Product(one, DType::f32, channels, 4, EntryReduction::sum, stream).check(ahead, 2, 2e-5);
    }
  }
}

// The last warp at a long row adds up its parts, product after product; where no counters are left,
// a second launch does, with the same bits.
TEST(SpmmGpu, adds_up_long_rows_in_one_launch_and_in_two) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t channels : {16, 128, 260}) {
    for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::min}) {
      const Product product(around_a_part(channels != 16), DType::f32, channels, 1, reduction,
                            stream);
      const SparsePlan by = product.plan(SparseDirection::forward, 4, 2);
      if (picks(reduction) && by.teams->ways > 1) continue;
      const CsrView pattern = product.forward.view();
      ASSERT_NE(cuda::arrival_counters(pattern, 1, stream), nullptr);
      CsrView alone = pattern;
      alone.kept = nullptr;
      ASSERT_EQ(cuda::arrival_counters(alone, 1, stream), nullptr);
      const auto run = [&](const CsrView& view) {
        return spmm(view, product.weights(), product.x_there, reduction, {}, &by);
      };
      const SpmmResult in_two = run(alone);
      const Tensor first = copy_to_host(in_two.output, stream);
      expect_near(first, product.expected.output, 1e-4, "output");
      for (int time = 0; time < (on_emulator() ? 3 : 50); ++time) {
        const SpmmResult in_one = run(pattern);
        ASSERT_TRUE(same_bits(copy_to_host(in_one.output, stream), first)) << time;
        if (picks(reduction)) {
          ASSERT_TRUE(
              same_bits(copy_to_host(in_one.source, stream), copy_to_host(in_two.source, stream)));
        }
      }
    }
  }
}

// More streams than there are sets of counters, of products by the rules' plan: those that come too
// late add up parts in a second launch.
TEST(ArrivalSetsGpu, many_streams_at_a_time_have_the_same_bits) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Product product(around_a_part(), DType::f32, 128, 1, EntryReduction::sum, stream);
  const CsrView pattern = product.forward.view();
  CsrView alone = pattern;
  alone.kept = nullptr;
  const Tensor first = copy_to_host(spmm(alone, product.weights(), product.x_there).output, stream);
  constexpr int kStreams = 7;
  const int times = on_emulator() ? 2 : 50;
  struct OfStream {
    Stream stream;
    Tensor x, values;
    std::vector<Tensor> outputs{};
  };
  std::vector<OfStream> all;
  for (int i = 0; i < kStreams; ++i) {
    Stream own(kGpu);
    Tensor x = copy_to(own, product.x), values = copy_to(own, product.values);
    own.wait();
    all.push_back({std::move(own), std::move(x), std::move(values)});
  }
  for (int time = 0; time < times; ++time) {
    for (OfStream& one : all)
      one.outputs.push_back(spmm(pattern, one.values, one.x).output);
  }
  int sets = 0;
  for (const OfStream& one : all) {
    sets += cuda::arrival_counters(pattern, 1, one.stream) != nullptr ? 1 : 0;
    for (const Tensor& output : one.outputs)
      ASSERT_TRUE(same_bits(copy_to_host(output, one.stream), first));
  }
  EXPECT_EQ(sets, kArrivalSets);
}

// The same of recordings, each launched again and again.
TEST(ArrivalSetsGpu, recordings_have_the_same_bits_at_every_launch) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Product product(around_a_part(), DType::f32, 128, 1, EntryReduction::sum, stream);
  const CsrView pattern = product.forward.view();
  const Tensor first =
      copy_to_host(spmm(pattern, product.weights(), product.x_there).output, stream);
  constexpr std::size_t kBytes = std::size_t{16} << 20;   // a recording takes none from elsewhere
  const auto heap = std::make_shared<StreamHeap>(stream.view());
  heap->deallocate(heap->allocate(kBytes, stream), kBytes, stream);
  std::vector<Tensor> outputs;
  std::vector<cuda::Graph> recordings;
  for (int i = 0; i < kArrivalSets + 2; ++i) {
    outputs.emplace_back(product.expected.output.shape(), DType::f32, stream.view());
    recordings.push_back(cuda::Graph::capture(stream, [&] {
      const AllocatorScope scope(stream.device(), heap);
      spmm(pattern, product.weights(), product.x_there, EntryReduction::sum,
           {.output = Place(outputs.back())});
    }));
  }
  for (int time = 0; time < 3; ++time) {
    for (std::size_t i = 0; i < recordings.size(); ++i) {
      fill_async(outputs[i].view(), -1, stream);
      recordings[i].launch();
      ASSERT_TRUE(same_bits(copy_to_host(outputs[i], stream), first)) << time << ", " << i;
    }
  }
}

TEST(ArrivalSetsGpu, belong_to_one_stream_or_recording_each) {
  PUMICE_NEEDS_GPU();
  const Stream first(kGpu), second(kGpu);
  const Csr csr = around_a_part().csr();
  const Csr pattern = copy_to(first, csr.view());
  first.wait();
  const auto counters = [&](const Stream& stream) {
    return cuda::arrival_counters(pattern.view(), 1, stream);
  };
  std::uint32_t* const of_first = counters(first);
  ASSERT_NE(of_first, nullptr);
  EXPECT_EQ(counters(first), of_first);
  std::vector<std::uint32_t*> all{of_first, counters(second)};
  const auto record = [&] {
    std::uint32_t* recorded = nullptr;
    const auto graph = cuda::Graph::capture(first, [&] {
      recorded = counters(first);
      EXPECT_EQ(counters(first), recorded);
    });
    return recorded;
  };
  all.push_back(record());
  all.push_back(record());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_NE(all[i], nullptr);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(all[i], all[j]);
  }
  EXPECT_EQ(record(), nullptr) << "there are four";
  EXPECT_EQ(counters(second), all[1]);
  EXPECT_EQ(cuda::arrival_counters(pattern.view(), kArrivalTiles + 1, first), nullptr);
  const Csr short_rows = rows_of("short", 100, {3, 4}).csr();
  const Csr none_is_long = copy_to(first, short_rows.view());
  EXPECT_EQ(cuda::arrival_counters(none_is_long.view(), 1, first), nullptr);
}

}   // namespace
}   // namespace pumice::test
