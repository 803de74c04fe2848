// Opening libcublas, and products through it.
#include "kernels/cuda/cublas.hpp"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/cuda/context.hpp"
#include "core/cuda/toolkit.hpp"
#include "core/environment.hpp"
#include "core/shared_library.hpp"
#include "jit/nvrtc.hpp"
#include "kernels/cuda/matrix_products.hpp"

namespace pumice::cuda {
namespace {

constexpr int kMajorVersion = 0;    // of a library's properties
constexpr int kPlain = 0;           // CUBLAS_OP_N
constexpr int kTransposed = 1;      // CUBLAS_OP_T
constexpr int kF32 = 0;             // CUDA_R_32F
constexpr int kF16 = 2;             // CUDA_R_16F
constexpr int kBf16 = 14;           // CUDA_R_16BF
constexpr int kSumsF32 = 68;        // CUBLAS_COMPUTE_32F
constexpr int kProductsTf32 = 77;   // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int kAnyAlgorithm = -1;   // CUBLAS_GEMM_DEFAULT
/// What NVIDIA recommends for Hopper; with memory of its own cuBLAS gives the same bits on every
/// stream.
constexpr std::int64_t kWorkspaceBytes = 32 << 20;

void find_functions(SharedLibrary& library, Cublas& functions) {
#define PUMICE_FIND(name, parameters) library.require(#name, functions.name);
  PUMICE_CUBLAS_FUNCTIONS(PUMICE_FIND)
#undef PUMICE_FIND
  library.require("cublasGetStatusString", functions.cublasGetStatusString);
}

/// The site-packages of the Pythons below a prefix.
void add_site_packages(std::vector<std::string>& folders, const std::filesystem::path& prefix) {
  std::error_code ignored;   // no such folder: nothing to look through
  for (std::filesystem::directory_iterator entry(prefix / "lib", ignored), end; entry != end;
       entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      folders.push_back((entry->path() / packages).string());
  }
}

/// Folders that hold NVIDIA's packages, `nvidia/…`.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  const std::filesystem::path nvrtc(jit::nvrtc_state().path);
  // nvidia/cuda_nvrtc/lib/libnvrtc.so.12
  const std::filesystem::path packages = nvrtc.parent_path().parent_path().parent_path();
  if (packages.filename() == "nvidia") folders.push_back(packages.parent_path().string());
  for (const std::string& prefix :
       {environment::virtual_environment(), environment::conda_prefix()}) {
    if (!prefix.empty()) add_site_packages(folders, prefix);
  }
  if (!environment::home().empty()) add_site_packages(folders, environment::home() + "/.local");
  for (const char* prefix : {"/usr/local", "/usr"})
    add_site_packages(folders, prefix);
  return folders;
}

int type_of(ElementType operand) {
  return operand == ElementType::f16 ? kF16 : operand == ElementType::bf16 ? kBf16 : kF32;
}

/// The library counts by columns: it sees every matrix transposed, and is asked for the transposed
/// product.
class CublasProducts final : public MatrixProducts {
 public:
  explicit CublasProducts(Device device) : device_(device) {
    const ContextGuard guard(device_);
    check(cublas_state().functions.cublasCreate_v2(&handle_), "cublasCreate");
  }

  void multiply(jit::KernelRunner& runner, std::span<const MatrixProduct> products) override {
    const ContextGuard guard(device_);
    auto workspace = runner.make<std::byte>(kWorkspaceBytes);
    const std::scoped_lock lock(mutex_);
    const Cublas& functions = cublas_state().functions;
    check(functions.cublasSetStream_v2(handle_, runner.stream().native), "cublasSetStream");
    check(functions.cublasSetWorkspace_v2(handle_, workspace.data(), workspace.bytes()),
          "cublasSetWorkspace");
    for (const MatrixProduct& product : products)
      multiply(product);
  }

 private:
  void multiply(const MatrixProduct& product) {
    if (product.rows == 0) return;
    PUMICE_ENSURES(product.rows <= std::numeric_limits<int>::max(), "a product of ", product.rows,
                   " rows");
    const float one = 1, zero = 0;
    const MatrixShape& shape = product.shape;
    const int in = shape.in_channels, out = shape.out_channels, groups = shape.groups;
    const int type = type_of(shape.operand);
    const bool turned = shape.transpose_weight;
    check(cublas_state().functions.cublasGemmStridedBatchedEx(
              handle_, turned ? kTransposed : kPlain, kPlain, out, static_cast<int>(product.rows),
              in, &one, product.weight, type, groups * (turned ? in : out), turned ? in : out,
              product.input, type, groups * in, in, &zero, product.output, kF32, groups * out, out,
              groups, shape.operand == ElementType::tf32 ? kProductsTf32 : kSumsF32, kAnyAlgorithm),
          "cublasGemmStridedBatchedEx");
  }

  static void check(CublasStatus status, const char* what) {
    if (status == 0) return;
    throw Error(detail::concatenate("cuBLAS: ", what, ": ",
                                    cublas_state().functions.cublasGetStatusString(status)));
  }

  Device device_;
  std::mutex mutex_;   // a handle serves one thread at a time
  CublasHandle handle_ = nullptr;
};

}   // namespace

CublasState open_cublas(const std::vector<std::string>& candidates) noexcept {
  CublasState state;
  SharedLibrary library({.name = "cuBLAS",
                         .vintage = " of CUDA 12 or later",
                         .remedy = "; install CUDA's libcublas or the Python package nvidia-cublas "
                                   "(for CUDA 12 nvidia-cublas-cu12), or name the library in "
                                   "PUMICE_CUBLAS"},
                        candidates);
  if (library.is_open()) find_functions(library, state.functions);
  state.path = library.file();
  state.reason = library.problem();
  if (!state.reason.empty()) return state;
  state.functions.cublasGetProperty(kMajorVersion, &state.major);
  if (state.major < 12)
    state.reason = detail::concatenate(state.path, " is cuBLAS ", state.major, ": Pumice needs 12");
  return state;
}

std::vector<std::string> cublas_candidates() {
  if (!environment::cublas().empty()) return {environment::cublas()};
  const std::vector<std::string> names = toolkit_names("cublas");
  std::vector<std::string> candidates = names;
  for (std::string& library : toolkit_libraries(names))
    candidates.push_back(std::move(library));
  for (const std::string& folder : package_folders()) {
    for (const std::string& name : names) {
      const bool newest = name.ends_with("13");
      candidates.push_back(folder + (newest ? "/nvidia/cu13/lib/" : "/nvidia/cublas/lib/") + name);
    }
  }
  return candidates;
}

const CublasState& cublas_state() noexcept {
  static const CublasState& state = *new CublasState(open_cublas(cublas_candidates()));
  return state;
}

MatrixProducts& cublas_products(Device device) {
  const CublasState& state = cublas_state();
  PUMICE_EXPECTS(state.reason.empty(), "dense products on ", to_string(device),
                 " are not available: ", state.reason);
  static std::mutex mutex;
  // Never destroyed: CUDA may be gone before static objects are.
  static auto& all = *new std::deque<std::pair<int, CublasProducts>>;
  const std::scoped_lock lock(mutex);
  for (auto& [index, products] : all) {
    if (index == device.index) return products;
  }
  return all
      .emplace_back(std::piecewise_construct, std::forward_as_tuple(device.index),
                    std::forward_as_tuple(device))
      .second;
}

}   // namespace pumice::cuda
