# Everything Pumice takes from others, and why. tools/packages.txt has the Debian and Ubuntu packages, a row each;
# what is missing is named at the end, all of it at once (cmake/missing.cmake).

# Threads: work stealing, arenas, and composition with a host program that uses oneTBB too.
pumice_find(TBB)
# SIMD: one source for AVX2, AVX-512 and NEON, the best one picked at run time.
pumice_find(hwy)
# Dense products of gather-GEMM-scatter and linear layers: the winner over OpenBLAS, oneDNN and BLIS
# in docs/decisions/0003-dense-products.md. Headers only.
pumice_find(Eigen3 3.4 NO_MODULE)
# Messages: type-safe formatting in the command line and the log.
pumice_find(fmt)
# Logging behind PUMICE_LOG.
pumice_find(spdlog)
# JSON of safetensors headers, of `--json`, of benchmark records and of tables of plans.
pumice_find(nlohmann_json)
# Deflate inside .npz archives and PNG pictures.
pumice_find(ZLIB)
# Tuned plans that several processes write at once, any of which may be killed: a file of our own would need
# locks, a journal and recovery, which SQLite has, and has tested for longer. It is opened only where plans are
# asked for or stored. The Python package takes the static library, where there is one: Python's own module
# sqlite3 brings another copy of it into the process, and two of one name would be one.
if(PUMICE_PYTHON)
  find_library(SQLite3_LIBRARY NAMES libsqlite3.a sqlite3)
endif()
pumice_find(SQLite3 3.35)
# Pictures of scans.
pumice_find(PNG)
# Text in those pictures, set in the font that cli/font has: one header, nothing to carry along or to be
# found when the program runs. FreeType would take libfreetype, libbrotli and libbz2 into every wheel, for
# shaping and hints that captions do not need. It believes what a font says of itself, so it is given
# ours alone. cmake/FindStb.cmake finds it.
pumice_find(Stb)
# Arguments of the command line.
pumice_find(CLI11)
if(PUMICE_TESTS)
  pumice_find(GTest)
  # Checks of the documentation and of the tree.
  pumice_find(Python3 COMPONENTS Interpreter)
endif()
if(PUMICE_BENCHMARKS)
  pumice_find(benchmark)
endif()
if(PUMICE_PYTHON)
  # CPython's headers.
  pumice_find(Python 3.10 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
  # Bindings with the stable ABI: docs/decisions/0006-python-package.md. From PyPI, since
  # what Debian and Ubuntu have is older.
  if(Python_FOUND)
    if(NOT nanobind_DIR AND NOT SKBUILD)
      execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
        OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    find_package(nanobind 3.1 CONFIG QUIET)
    if(NOT nanobind_FOUND)
      set_property(GLOBAL APPEND PROPERTY PUMICE_MISSING "nanobind 3.1")
      set_property(GLOBAL PROPERTY PUMICE_MISSING_MODULES "'nanobind>=3.1,<4' 'nanobind-backend>=1.0,<2'")
    endif()
  endif()
endif()
pumice_report_missing()
# `make setup` also installs ccache, if it is not there: the wheel that the tests install is compiled from what the
# release build compiled before (cmake/settings.cmake). Nothing needs it.
# The Python package takes more (pyproject.toml):
#   nanobind-backend             what of nanobind depends on the version of Python
#   scikit-build-core            makes a wheel of this CMake project
#   numpy                        arrays where there is no PyTorch
#   torch, pytest, pytest-xdist  its tests, on several processes where `pytest -n` asks for them
#   safetensors                  its tests: the documentation reads results with it
#   python3-venv                 the environment that `make test` makes
