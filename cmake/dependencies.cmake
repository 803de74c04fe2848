# Everything Pumice takes from others, and why. Debian/Ubuntu package names are in
# tools/packages.txt, which `make` reads.

# Threads: work stealing, arenas, and composition with a host program that uses oneTBB too.
find_package(TBB REQUIRED)
# SIMD: one source for AVX2, AVX-512 and NEON, the best one picked at run time.
find_package(hwy REQUIRED)
# Dense products of gather-GEMM-scatter and linear layers. Compared with oneDNN and Eigen in
# docs/decisions/0003-dense-products.md. The serial build: our threads call it side by side.
find_library(PUMICE_OPENBLAS NAMES openblas PATH_SUFFIXES openblas-serial REQUIRED)
find_path(PUMICE_OPENBLAS_INCLUDE NAMES cblas.h PATH_SUFFIXES
  x86_64-linux-gnu/openblas-serial aarch64-linux-gnu/openblas-serial openblas REQUIRED)
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

add_library(pumice_openblas INTERFACE)
target_include_directories(pumice_openblas SYSTEM INTERFACE ${PUMICE_OPENBLAS_INCLUDE})
target_link_libraries(pumice_openblas INTERFACE ${PUMICE_OPENBLAS})
