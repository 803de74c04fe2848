# Everything Pumice takes from others, and why. Debian/Ubuntu package names are in
# tools/packages.txt, which `make` reads.

# Threads: work stealing, arenas, and composition with a host program that uses oneTBB too.
find_package(TBB REQUIRED)
# SIMD: one source for AVX2, AVX-512 and NEON, the best one picked at run time.
find_package(hwy REQUIRED)
# Dense products of gather-GEMM-scatter and linear layers: the winner over OpenBLAS, oneDNN and BLIS
# in docs/decisions/0003-dense-products.md. Headers only.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
# Messages: type-safe formatting in the command line and the log.
find_package(fmt REQUIRED)
# Logging behind PUMICE_LOG.
find_package(spdlog REQUIRED)
# JSON of safetensors headers, of `--json` and of benchmark records.
find_package(nlohmann_json REQUIRED)
# Deflate inside .npz archives and PNG pictures.
find_package(ZLIB REQUIRED)
# Pictures of scans.
find_package(PNG REQUIRED)
# Arguments of the command line.
find_package(CLI11 REQUIRED)
if(PUMICE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(PUMICE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
# The Python package takes more (pyproject.toml; python/CMakeLists.txt finds what it builds with):
#   nanobind, nanobind-backend   bindings with the stable ABI: docs/decisions/0006-python-package.md
#   scikit-build-core            makes a wheel of this CMake project
#   numpy                        arrays where there is no PyTorch
#   torch, pytest                its tests
#   python3-dev, python3-venv    CPython's headers, and the environment that `make test` makes
