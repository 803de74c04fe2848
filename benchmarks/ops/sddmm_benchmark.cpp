// Ways to compute sddmm on a GPU: milliseconds of each specification of EdgeMap beside that which
// is chosen.
//
//   pumice_sddmm_benchmark GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]
//                                                  by default 32 64 128 256 512
//
// GRAPH holds `row` and `column`, i64 [entries], and `nodes`, i64 [1]. A line for each type, number
// of channels and specification: milliseconds as spmm_benchmark measures them, queued first, bytes
// gathered on the right over the queued time, and the largest difference from what is chosen, which
// is 0 but for the order of sums. The fastest is repeated.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <pumice/core/dtype.hpp>
#include <pumice/core/error.hpp>

#include "graph_products.hpp"
#include "kernels/cuda/entry_launch.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "ops/cuda/sources.hpp"

namespace {

using namespace pumice;
using namespace pumice::benchmarks;

struct Way {
  std::string name;
  EdgeMapSpec spec;
};

/// What is tried beside each other, with as many warps of a multiprocessor as leave registers
/// enough on sm_90 for heads of one tile.
struct Candidate {
  int ahead, chunks, warps;
};
constexpr Candidate kCandidates[] = {
    {2, 1, 40}, {2, 1, 48}, {4, 1, 32}, {4, 1, 40}, {8, 1, 20}, {2, 2, 32}, {4, 2, 16},
};

std::vector<Way> ways_for(ElementType type, std::int64_t channels) {
  const EdgeMapSpec chosen = cuda::edge_dot_spec(type, channels, false);
  std::vector<Way> ways{{"chosen", chosen}};
  const auto add = [&](const std::string& name, EdgeMapSpec spec) {
    spec.wide =
        channels > std::int64_t{spec.schedule.team} * spec.schedule.chunks * entry_chunk(spec.type);
    if (why_invalid(spec) == nullptr && !(spec == chosen)) ways.push_back({name, spec});
  };
  const bool is_of_chunks = channels > std::int64_t{32} * entry_chunk(type);
  for (const Candidate& one : kCandidates) {
    if (is_of_chunks ? one.ahead == 8 : one.chunks > 1) continue;
    EdgeMapSpec spec = chosen;
    spec.schedule.ahead = one.ahead;
    spec.schedule.chunks = one.chunks;
    spec.warps = is_of_chunks && one.chunks == 1 ? std::min(one.warps, 24) : one.warps;
    add("ahead " + std::to_string(one.ahead) + ", chunks " + std::to_string(one.chunks) + ", " +
            std::to_string(spec.warps) + " warps",
        spec);
  }
  return ways;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const Tensor left = a.to(DType::f64), right = b.to(DType::f64);
  double largest = 0;
  for (std::size_t i = 0; i < left.span<double>().size(); ++i) {
    const double difference = std::abs(left.span<double>()[i] - right.span<double>()[i]);
    if (!(difference <= largest)) largest = difference;   // NaN too
  }
  return largest;
}

void measure(const Csr& pattern, DType type, std::int64_t channels, const Stream& stream) {
  const CsrView view = pattern.view();
  const Tensor left = copy_to(stream, random_rows(view.rows, channels, type));
  const Tensor right = copy_to(stream, random_rows(view.columns, channels, type));
  Tensor output = copy_to(stream, Tensor::zeros({view.entries(), 1}, type));
  const double gathered =
      static_cast<double>(view.entries() * channels) * static_cast<double>(size_of(type)) * 1e-9;
  Tensor expected;
  std::string fastest;
  double least = 0;
  for (const Way& way : ways_for(cuda::storage_element(type), channels)) {
    jit::DeviceRunner runner = cuda::runner_for(left);
    fill_async(output.view(), 1e3, stream);   // nothing of the one before counts
    const cuda::EdgeDotLaunch launch{
        .pattern = view, .left = left, .right = right, .output = output.view()};
    const Times times =
        milliseconds(stream, [&] { cuda::launch_edge_dot(runner, launch, way.spec); });
    const Tensor found = copy_to_host(output, stream);
    if (!expected.defined()) expected = found;
    std::printf("  %-4s F %4lld %-46s %8.4f ms (alone %.4f), %5.2f TB/s, off by %.2g  %s\n",
                std::string(name_of(type)).c_str(), static_cast<long long>(channels),
                way.name.c_str(), times.queued, times.alone, gathered / times.queued,
                largest_difference(found, expected), cuda::entry_name(way.spec).c_str());
    std::fflush(stdout);
    if (fastest.empty() || times.queued < least) fastest = way.name, least = times.queued;
  }
  std::printf("%s F %lld: fastest %.4f ms, %s\n", std::string(name_of(type)).c_str(),
              static_cast<long long>(channels), least, fastest.c_str());
}

}   // namespace

int main(int count, char** arguments) try {
  PUMICE_EXPECTS(count >= 2, "give a graph: GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]");
  const Stream stream(Device{DeviceKind::cuda, 0});   // says first where there is no device
  const Csr pattern = pattern_in(arguments[1], stream);
  for (const DType type : {DType::f32, DType::f16})
    for (const std::int64_t of : channels_of(count, arguments, {32, 64, 128, 256, 512}))
      measure(pattern, type, of, stream);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
