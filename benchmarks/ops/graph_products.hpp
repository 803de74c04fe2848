// What benchmarks of products over a graph share: the graph, rows of features, times on a device.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/graphs/matrix_market.hpp>

namespace pumice::benchmarks {

struct Times {
  double alone, queued;   // ms of a call: between two events; enqueued one behind the other
};

/// The median of 30 calls after 10, and of 5 times 20 calls.
inline Times milliseconds(const Stream& stream, const std::function<void()>& run) {
  constexpr int kQueued = 20;
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

/// Of -1 to 1.
inline Tensor random_rows(std::int64_t rows, std::int64_t channels, DType type) {
  Tensor values({rows, channels}, DType::f32);
  Random random(1);
  for (float& value : values.span<float>())
    value = static_cast<float>(random.uniform(-1, 1));
  return values.to(type);
}

/// GRAPH.safetensors holds `row` and `column`, i64 [entries], and `nodes`, i64 [1]; or MATRIX.mtx.
inline Csr read_pattern(const std::string& path) {
  if (path.ends_with(".mtx")) {
    const MatrixLines lines = read_matrix_market(path);
    const MatrixEntries entries = entries_of(lines);
    return Csr(lines.rows, lines.columns, entries.row, entries.column);
  }
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::int64_t nodes = file.get("nodes").span<std::int64_t>()[0];
  return Csr(nodes, nodes, file.get("row"), file.get("column"));
}

/// The pattern in `path`, on the device of `stream`, with a line about it.
inline Csr pattern_in(const std::string& path, const Stream& stream) {
  const Csr here = read_pattern(path);
  const auto start = std::chrono::steady_clock::now();
  Csr pattern = copy_to(stream, here.view());
  stream.wait();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %lld rows, %lld entries, copied in %.2f ms\n", path.c_str(),
              static_cast<long long>(here.view().rows),
              static_cast<long long>(here.view().entries()), took.count());
  return pattern;
}

/// The numbers of channels behind the graph, or `usual`.
inline std::vector<std::int64_t> channels_of(int count, char** arguments,
                                             std::vector<std::int64_t> usual) {
  std::vector<std::int64_t> channels;
  for (int i = 2; i < count; ++i)
    channels.push_back(std::stoll(arguments[i]));
  return channels.empty() ? usual : channels;
}

}   // namespace pumice::benchmarks
