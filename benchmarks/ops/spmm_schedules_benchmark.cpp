// Schedules of a product of a sparse matrix on a GPU beside each other, without what the host
// takes: 20 products recorded into a graph, whose launches are timed.
//
//   pumice_spmm_schedules_benchmark [--chosen] GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]
//
// With 32, 128 and 512 channels by default. A line for each type and number of channels, then one
// for each schedule, with --chosen for the rules' own and for the other way to walk: microseconds
// of a product with weights in the order of entries, with weights in another order, which are
// looked up, and with parts of long rows added up by a second launch.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/stream_heap.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "core/cuda/graph.hpp"
#include "graph_products.hpp"
#include "plan/space/entry_schedules.hpp"

namespace {

using namespace pumice;
using namespace pumice::benchmarks;

constexpr int kProducts = 20;

/// Entries in another order than that of rows.
Csr shuffled(const Csr& pattern) {
  const CsrView view = pattern.view();
  std::vector<std::int64_t> order(static_cast<std::size_t>(view.entries()));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int64_t>(i);
  Random random(7);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
  Tensor row({view.entries()}, DType::i64), column({view.entries()}, DType::i64);
  for (std::int64_t r = 0; r < view.rows; ++r) {
    for (std::int64_t e = view.begin_of(r); e < view.end_of(r); ++e) {
      const std::int64_t to = order[static_cast<std::size_t>(e)];
      row.data<std::int64_t>()[to] = r;
      column.data<std::int64_t>()[to] = view.column[static_cast<std::size_t>(e)];
    }
  }
  return Csr(view.rows, view.columns, row, column);
}

/// Memory for what is recorded, which cannot take any from elsewhere.
std::shared_ptr<StreamHeap> memory_on(const Stream& stream) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  auto heap = std::make_shared<StreamHeap>(stream.view());
  heap->deallocate(heap->allocate(kBytes, stream), kBytes, stream);
  return heap;
}

/// Microseconds of a product, the median of launches.
double recorded(const Stream& stream, const std::shared_ptr<StreamHeap>& heap,
                const std::function<void()>& run) {
  run();   // compiles
  stream.wait();
  const auto graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope scope(stream.device(), heap);
    for (int i = 0; i < kProducts; ++i)
      run();
  });
  std::vector<double> times;
  for (int i = 0; i < 8; ++i) {
    Event begin(stream.device(), true), end(stream.device(), true);
    begin.record(stream);
    graph.launch();
    end.record(stream);
    stream.wait();
    if (i > 1) times.push_back(1000 * milliseconds_between(begin, end) / kProducts);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

/// The rules' plan first, then that of the other way to walk; with `all` also others of both.
std::vector<SparsePlan> plans_of(const SparseProblem& problem, const Target& target, bool all) {
  const SparsePlan ruled = *choose_by_rules(problem, target);
  std::vector<SparsePlan> plans{ruled};
  const auto add = [&](const TeamSchedule& teams) {
    SparsePlan plan = ruled;
    plan.teams = teams;
    try {
      check(plan, problem, target);
    } catch (const UserError&) {
      return;   // there is no such kernel
    }
    for (const SparsePlan& one : plans)
      if (one.runs_like(plan)) return;
    plans.push_back(plan);
  };
  TeamSchedule team = cuda::row_teams(problem, target, 0);
  TeamSchedule warp = cuda::row_teams(problem, target, 32 / team.team);
  add(team);
  add(warp);
  if (!all) return plans;
  team.ahead *= 2;
  add(team);
  const std::int32_t units = warp.units;
  for (const std::int32_t ahead : {2, 4, 8}) {
    for (const std::int32_t times : {1, 2, 4, 8}) {
      warp.ahead = ahead;
      warp.units = std::clamp(times * units / 4, 1, cuda::kMostUnits);
      add(warp);
    }
  }
  return plans;
}

void measure(const Csr& here, const Csr& other, DType type, std::int64_t channels, bool all,
             const Stream& stream, const std::shared_ptr<StreamHeap>& heap) {
  const CsrView view = here.view();
  const Tensor x = copy_to(stream, random_rows(view.columns, channels, type));
  const Tensor values = copy_to(stream, random_rows(view.entries(), 1, type));
  Tensor output({view.rows, channels}, type, stream.view());
  SparseProblem problem{.rows = view.rows,
                        .columns = view.columns,
                        .entries = view.entries(),
                        .channels = channels,
                        .dtype = type,
                        .weighted = true};
  std::printf("%s F %lld\n", std::string(name_of(type)).c_str(), static_cast<long long>(channels));
  const auto time = [&](const Csr& of, const SparsePlan& plan, bool in_two = false) {
    const Csr pattern = copy_to(stream, of.view());   // whose counters nobody has had yet
    CsrView there = pattern.view();
    if (in_two) there.kept = nullptr;
    return recorded(stream, heap, [&] {
      spmm(there, values, x, EntryReduction::sum, {.output = Place(output)}, &plan);
    });
  };
  for (const SparsePlan& plan : plans_of(problem, target_of(stream.device()), all)) {
    std::printf("  %-36s %8.2f   looked up %8.2f", plan.name().c_str(), time(here, plan),
                time(other, plan));
    if (plan.teams->ways > 0) std::printf("   parts apart %8.2f", time(here, plan, true));
    std::printf("\n");
    std::fflush(stdout);
  }
}

}   // namespace

int main(int count, char** arguments) try {
  const bool all = count < 2 || std::string_view(arguments[1]) != "--chosen";
  if (!all) --count, ++arguments;
  PUMICE_EXPECTS(count >= 2, "give a graph: GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]");
  const Stream stream(Device{DeviceKind::cuda, 0});   // says first where there is no device
  const Csr here = read_pattern(arguments[1]);
  std::printf("%s: %lld rows, %lld entries\n", arguments[1],
              static_cast<long long>(here.view().rows),
              static_cast<long long>(here.view().entries()));
  const Csr other = shuffled(here);
  const auto heap = memory_on(stream);
  for (const DType type : {DType::f32, DType::f16})
    for (const std::int64_t of : channels_of(count, arguments, {32, 128, 512}))
      measure(here, other, type, of, all, stream, heap);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
