// Products over parts on the CPU: what every format takes beside the pattern itself.
//
//   pumice_part_products_benchmark GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]   by default 32 128
//
// GRAPH holds `row` and `column`, i64 [entries], and `nodes`, i64 [1]. For each format:
// milliseconds to cut, positions for an entry, and for each number of channels the median of 15
// calls of spmm with weights and of sddmm, in f32, each of which follows one of the pattern, as a
// ratio.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/part_products.hpp>

#include "graph_products.hpp"

namespace {

using namespace pumice;
using namespace pumice::benchmarks;

/// Of the processor, on one thread: others on the machine disturb it least.
double milliseconds(const std::function<void()>& run) {
  const std::clock_t start = std::clock();
  run();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

struct Pair {
  double ours, whole;
};

/// Medians of calls by turns.
Pair by_turns(const std::function<void()>& ours, const std::function<void()>& whole) {
  std::vector<double> of_ours, of_whole;
  for (int i = 0; i < 18; ++i) {
    const double first = milliseconds(whole), second = milliseconds(ours);
    if (i < 3) continue;
    of_whole.push_back(first);
    of_ours.push_back(second);
  }
  std::ranges::sort(of_ours);
  std::ranges::sort(of_whole);
  return {of_ours[of_ours.size() / 2], of_whole[of_whole.size() / 2]};
}

void measure(const CsrView& pattern, const char* name, const std::vector<std::int64_t>& channels,
             const std::function<Decomposed()>& make) {
  Decomposed parts;
  double cut = 0;
  try {
    cut = milliseconds([&] { parts = make(); });
  } catch (const UserError& error) {
    std::printf("  %-14s %s\n", name, error.what());
    return;
  }
  std::int64_t positions = 0;
  for (const PartView& part : parts.views())
    positions += part.slots() * part.shape.positions();
  std::printf("  %-14s cut %7.1f ms, %6.2f positions an entry", name, cut,
              static_cast<double>(positions) /
                  static_cast<double>(std::max<std::int64_t>(pattern.entries(), 1)));
  const Tensor values = random_rows(pattern.entries(), 1, DType::f32);
  for (const std::int64_t count : channels) {
    const Tensor x = random_rows(pattern.columns, count, DType::f32);
    const Tensor left = random_rows(pattern.rows, count, DType::f32);
    const Pair sums = by_turns([&] { spmm(parts, values, x); }, [&] { spmm(pattern, values, x); });
    const Pair dots = by_turns([&] { sddmm(parts, left, x); }, [&] { sddmm(pattern, left, x); });
    std::printf(" | F %lld: spmm %.2f ms, %.2fx, sddmm %.2f ms, %.2fx",
                static_cast<long long>(count), sums.ours, sums.ours / sums.whole, dots.ours,
                dots.ours / dots.whole);
  }
  std::printf("\n");
}

}   // namespace

int main(int count, char** arguments) try {
  PUMICE_EXPECTS(count >= 2, "give a graph: GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]");
  set_threads(1);
  const Csr of = read_pattern(arguments[1]);
  const CsrView pattern = of.view();
  const std::vector<std::int64_t> channels = channels_of(count, arguments, {32, 128});
  std::printf("%s: %lld rows, %lld entries\n", arguments[1], static_cast<long long>(pattern.rows),
              static_cast<long long>(pattern.entries()));
  measure(pattern, "identity", channels, [&] { return formats::identity(pattern); });
  measure(pattern, "dcsr", channels, [&] { return formats::dcsr(pattern); });
  measure(pattern, "padded_csr(8)", channels, [&] { return formats::padded_csr(pattern, 8); });
  measure(pattern, "ell(32)", channels, [&] { return formats::ell(pattern, 32); });
  measure(pattern, "hyb(1, k)", channels, [&] { return formats::hyb(pattern); });
  measure(pattern, "hyb(2, k)", channels,
          [&] { return formats::hyb(pattern, {.column_parts = 2}); });
  measure(pattern, "dbsr(4, 4)", channels, [&] { return formats::dbsr(pattern, 4, 4); });
  measure(pattern, "sr_bcrs(8, 16)", channels, [&] { return formats::sr_bcrs(pattern, 8, 16); });
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
