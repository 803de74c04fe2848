# Language, optimisation and warnings of our own targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
option(BUILD_SHARED_LIBS "Build pumice as a shared library" OFF)
if(NOT BUILD_SHARED_LIBS)
  # A static pumice stays private to what it is linked into, so that two in one process do not mix.
  # A shared one exports all it has: the tests reach inside it, and a macro on every public
  # declaration would buy nothing but a shorter symbol table.
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The wheel of `make test` compiles the library's sources once more, with the flags of the release build:
# from ccache that takes seconds instead of a third of the whole command. Build folders lie equally deep
# (build/release, build/python), so that names of files relative to the folder are the same in both; `__FILE__` is such a name.
find_program(PUMICE_CCACHE ccache DOC "Keeps what was compiled from one build folder to the next; empty: none")
if(PUMICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache must overlook to keep files that read precompiled headers: they hold neither the
  # date nor macros of the command line.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    ${PUMICE_CCACHE})
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_library(pumice_settings INTERFACE)
target_compile_options(pumice_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wno-psabi)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # AVX2, FMA, BMI2: every x86 server since 2013 (AMD: 2015). Wider vectors are chosen at run time.
  target_compile_options(pumice_settings INTERFACE -march=x86-64-v3)
endif()
# a * b + c is one rounding only where the code says so: results must not depend on the compiler.
target_compile_options(pumice_settings INTERFACE -ffp-contract=off)

if(PUMICE_SANITIZE)
  add_compile_options(-fsanitize=${PUMICE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PUMICE_SANITIZE})
  if(PUMICE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  # For code that only calls the library: without these checks of every access a file of tests compiles in two
  # thirds of the time (12.0 s to 7.8), and the address sanitizer still sees where an access goes.
  if(PUMICE_SANITIZE MATCHES "undefined")
    set(PUMICE_FEWER_CHECKS -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  if(PUMICE_SANITIZE MATCHES "address")
    set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    target_sources(pumice_settings INTERFACE
      $<${is_program}:${CMAKE_CURRENT_LIST_DIR}/sanitizer_options.cpp>)
  endif()
endif()
