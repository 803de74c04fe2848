# Headers of the standard library are 50,000 to 80,000 lines a file here, and reading them is half of what compiling
# takes, so they are read precompiled. The compiler does not complain of a missing include then; tools/check_layers.py does,
# for names in std and in namespaces of other libraries. Macros and names outside of namespaces show with OFF alone.
option(PUMICE_PRECOMPILE "Precompile the headers that many files include" ${PUMICE_ALONE})
set(PUMICE_STANDARD_HEADERS <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstring>
  <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
  <unordered_map> <utility> <vector>)

# The first target of a `kind` precompiles these and ARGN, and the others of that kind take what it made. Fuzz targets have other
# options in some stages than in others, for which Clang refuses to share.
function(pumice_precompile kind target)
  if(NOT PUMICE_PRECOMPILE OR PUMICE_FUZZ)
    return()
  endif()
  get_property(first GLOBAL PROPERTY PUMICE_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${PUMICE_STANDARD_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY PUMICE_PRECOMPILED_${kind} ${target})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)   # for ccache
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 takes strings that are added up for writes out of bounds (its bug 105651), which it does not say of a
      # system's headers unless they are precompiled.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
    endif()
  endif()
endfunction()
