// Products of a sparse matrix on a GPU: milliseconds of spmm and sddmm.
//
//   pumice_spmm_benchmark GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]   by default 32 128 512
//
// GRAPH holds `row` and `column`, i64 [entries], and `nodes`, i64 [1]. A line for
// each type and number of channels: the median of 30 calls after 10, each between two events, with
// what the host takes for it; in parentheses that of 20 calls enqueued one behind the other; bytes
// that are gathered over that; the pattern's time to be copied there.
#include <cstdio>
#include <string>

#include <pumice/core/error.hpp>
#include <pumice/ops/spmm.hpp>

#include "graph_products.hpp"

namespace {

using namespace pumice;
using namespace pumice::benchmarks;

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
  PUMICE_EXPECTS(count >= 2, "give a graph: GRAPH.safetensors|MATRIX.mtx [CHANNELS ...]");
  const Stream stream(Device{DeviceKind::cuda, 0});   // says first where there is no device
  const Csr pattern = pattern_in(arguments[1], stream);
  for (const DType type : {DType::f32, DType::f16})
    for (const std::int64_t of : channels_of(count, arguments, {32, 128, 512}))
      measure(pattern, type, of, stream);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
