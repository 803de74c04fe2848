// Products of a sparse matrix on a GPU: milliseconds of spmm and sddmm.
//
//   pumice_spmm_benchmark GRAPH.safetensors [CHANNELS ...]       by default 32 128 512
//
// GRAPH holds `row` and `column`, i64 [entries], sorted by row, and `nodes`, i64 [1]. A line for
// each type and number of channels: the median of 30 calls after 10, each between two events, with
// what the host takes for it; in parentheses that of 20 calls enqueued one behind the other; bytes
// that are gathered over that; the pattern's time to be copied there.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/ops/spmm.hpp>

namespace {

using namespace pumice;

struct Times {
  double alone, queued;
};

constexpr int kQueued = 20;

Times milliseconds(const Stream& stream, const std::function<void()>& run) {
  const auto median_of = [&](int rounds, int calls) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      Event begin(stream.device(), true), end(stream.device(), true);
      begin.record(stream);
      for (int call = 0; call < calls; ++call)
        run();
      end.record(stream);
      stream.wait();
      times.push_back(milliseconds_between(begin, end) / calls);
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  };
  median_of(10, 1);
  return {median_of(30, 1), median_of(5, kQueued)};
}

Tensor random_rows(std::int64_t rows, std::int64_t channels, DType type) {
  Tensor values({rows, channels}, DType::f32);
  Random random(1);
  for (float& value : values.span<float>())
    value = static_cast<float>(random.uniform(-1, 1));
  return values.to(type);
}

void measure(const Csr& pattern, DType type, std::int64_t channels, const Stream& stream) {
  const CsrView view = pattern.view();
  const Tensor x = copy_to(stream, random_rows(view.columns, channels, type));
  const Tensor values = copy_to(stream, random_rows(view.entries(), 1, type));
  const double gathered =
      static_cast<double>(view.entries() * channels) * static_cast<double>(size_of(type)) * 1e-9;
  const auto say = [&](const char* what, const Times& times) {
    std::printf("  %-5s F %4lld %-22s %8.4f ms (%.4f), %5.2f TB/s gathered\n",
                std::string(name_of(type)).c_str(), static_cast<long long>(channels), what,
                times.alone, times.queued, gathered / times.queued);
  };
  say("spmm sum, weights", milliseconds(stream, [&] { spmm(view, values, x); }));
  say("spmm sum", milliseconds(stream, [&] { spmm(view, {}, x); }));
  say("spmm max", milliseconds(stream, [&] { spmm(view, {}, x, EntryReduction::max); }));
  say("sddmm", milliseconds(stream, [&] { sddmm(view, x, x); }));
}

}   // namespace

int main(int count, char** arguments) try {
  PUMICE_EXPECTS(count >= 2, "give a graph: GRAPH.safetensors [CHANNELS ...]");
  const Stream stream(Device{DeviceKind::cuda, 0});   // says first where there is no device
  const SafetensorsFile file = SafetensorsFile::open(arguments[1]);
  const std::int64_t nodes = file.get("nodes").span<std::int64_t>()[0];
  const Csr here(nodes, nodes, file.get("row"), file.get("column"));
  const auto start = std::chrono::steady_clock::now();
  const Csr pattern = copy_to(stream, here.view());
  stream.wait();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %lld nodes, %lld entries, copied in %.2f ms\n", arguments[1],
              static_cast<long long>(nodes), static_cast<long long>(here.view().entries()),
              took.count());
  std::vector<std::int64_t> channels;
  for (int i = 2; i < count; ++i)
    channels.push_back(std::stoll(arguments[i]));
  if (channels.empty()) channels = {32, 128, 512};
  for (const DType type : {DType::f32, DType::f16})
    for (const std::int64_t of : channels)
      measure(pattern, type, of, stream);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
