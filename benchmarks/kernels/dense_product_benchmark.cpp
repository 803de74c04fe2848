// Libraries for dense products, on the shapes of gather-GEMM-scatter, called from one thread and
// from two at once as pumice calls them. Besides our own choice it measures every library named in
// PUMICE_DENSE_LIBRARIES, a list of paths separated by ':' that export cblas_sgemm or dnnl_sgemm:
//
//   PUMICE_DENSE_LIBRARIES=/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0
//   pumice_dense_product_benchmark
//
// `wrong` counts elements that differ from a plain loop over small integers, which is exact.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <pumice/core/random.hpp>
#include <pumice/kernels/dense_gemm.hpp>

namespace {

/// c [m, n] = a [m, k] · b [k, n], row-major and dense.
using Product = std::function<void(int m, int n, int k, const float* a, const float* b, float* c)>;

struct Library {
  std::string name;
  Product product;
};

template <class Function> Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

Product foreign_product(void* library) {
  if (auto* set_threads = symbol<void(int)>(library, "openblas_set_num_threads")) set_threads(1);
  using Cblas = void(int, int, int, int, int, int, float, const float*, int, const float*, int,
                     float, float*, int);
  if (auto* sgemm = symbol<Cblas>(library, "cblas_sgemm")) {
    return [sgemm](int m, int n, int k, const float* a, const float* b, float* c) {
      constexpr int kRowMajor = 101, kNoTranspose = 111;
      sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a, k, b, n, 0, c, n);
    };
  }
  using Dnnl = int(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                   std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);
  if (auto* sgemm = symbol<Dnnl>(library, "dnnl_sgemm")) {
    return [sgemm](int m, int n, int k, const float* a, const float* b, float* c) {
      sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, c, n);
    };
  }
  return {};
}

std::vector<Library> libraries() {
  std::vector<Library> result{
      {"eigen", [](int m, int n, int k, const float* a, const float* b, float* c) {
         pumice::dense_gemm(m, n, k, a, k, b, n, c, n, false);
       }}};
  const char* named = std::getenv("PUMICE_DENSE_LIBRARIES");
  std::istringstream paths(named == nullptr ? "" : named);
  for (std::string path; std::getline(paths, path, ':');) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const Product product = library == nullptr ? Product{} : foreign_product(library);
    if (!product) {
      std::fprintf(stderr, "%s exports neither cblas_sgemm nor dnnl_sgemm\n", path.c_str());
      std::exit(1);
    }
    result.push_back({std::filesystem::path(path).parent_path().filename().string() + "/" +
                          std::filesystem::path(path).filename().string(),
                      product});
  }
  return result;
}

std::vector<float> integers(std::int64_t size, std::uint64_t seed) {
  pumice::Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& value : values)
    value = static_cast<float>(random.integer(-3, 3));
  return values;
}

void measure(benchmark::State& state, const Product& product) {
  const int m = static_cast<int>(state.range(0)), k = static_cast<int>(state.range(1)),
            n = static_cast<int>(state.range(2));
  const auto seed = static_cast<std::uint64_t>(state.thread_index());
  const std::vector<float> a = integers(std::int64_t{m} * k, seed);
  const std::vector<float> b = integers(std::int64_t{k} * n, seed + 100);
  std::vector<float> c(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  std::vector<float> expected(c.size());
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(n),
                      column = i % static_cast<std::size_t>(n);
    for (std::size_t x = 0; x < static_cast<std::size_t>(k); ++x) {
      expected[i] +=
          a[row * static_cast<std::size_t>(k) + x] * b[x * static_cast<std::size_t>(n) + column];
    }
  }
  std::int64_t wrong = 0;
  for (auto _ : state) {
    product(m, n, k, a.data(), b.data(), c.data());
    benchmark::ClobberMemory();
    for (std::size_t i = 0; i < c.size(); i += 97)
      wrong += c[i] != expected[i];
  }
  const double flop = 2.0 * m * n * k * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(flop * 1e-9, benchmark::Counter::kIsRate);
  state.counters["wrong"] = static_cast<double>(wrong);
}

const bool registered = [] {
  for (const Library& library : libraries()) {
    benchmark::RegisterBenchmark(
        library.name.c_str(),
        [product = library.product](benchmark::State& state) { measure(state, product); })
        ->ArgNames({"m", "k", "n"})
        ->Args({128, 16, 16})
        ->Args({128, 96, 96})
        ->Args({128, 256, 256})
        ->Args({1024, 4, 32})
        ->Args({1024, 32, 32})
        ->Args({1024, 96, 96})
        ->Args({1024, 128, 128})
        ->Args({1024, 256, 256})
        ->Args({1024, 384, 256})
        ->Args({32768, 96, 96})
        ->Threads(1)
        ->Threads(2)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}   // namespace
