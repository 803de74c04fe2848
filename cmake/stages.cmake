# A stage is a folder of src/ and an object library that may include only its own headers and those
# of stages before it. The stages together are the library `pumice`.
set(PUMICE_STAGES "" CACHE INTERNAL "")

function(pumice_stage stage)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${stage}/*.cpp)
  add_library(pumice_${stage} OBJECT ${sources})
  target_link_libraries(pumice_${stage}
    PUBLIC pumice_includes
    PRIVATE pumice_settings TBB::tbb hwy::hwy fmt::fmt spdlog::spdlog
            nlohmann_json::nlohmann_json ZLIB::ZLIB Eigen3::Eigen)
  target_include_directories(pumice_${stage} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(PUMICE_SANITIZE AND stage MATCHES "^(jit|plan|nn)$")   # none of which goes over rows
    target_compile_options(pumice_${stage} PRIVATE -O0)
    pumice_precompile(unoptimised_stages pumice_${stage} <fmt/format.h>)
  else()
    pumice_precompile(stages pumice_${stage} <fmt/format.h>)
  endif()
  set(PUMICE_STAGES ${PUMICE_STAGES} ${stage} CACHE INTERNAL "")
endfunction()

# The headers of device/ as strings inside `stage`, for the compiler that runs on the user's machine.
function(pumice_embed_device_tree stage)
  set(output ${PROJECT_BINARY_DIR}/generated/device_tree.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_device_tree.cmake)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/device/pumice/*.h)
  set(list ${PROJECT_BINARY_DIR}/generated/device_tree.txt)   # a header that goes is a change too
  file(CONFIGURE OUTPUT ${list} CONTENT "@headers@\n" @ONLY)
  add_custom_command(OUTPUT ${output} DEPENDS ${headers} ${list} ${script}
            ${PROJECT_SOURCE_DIR}/cmake/text_literals.cmake
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/device -DOUTPUT=${output} -P ${script}
    COMMENT "Embedding the device headers" VERBATIM)
  target_sources(pumice_${stage} PRIVATE ${output})
endfunction()

add_library(pumice_includes INTERFACE)
target_include_directories(pumice_includes INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/device>
  $<INSTALL_INTERFACE:include>)
target_compile_features(pumice_includes INTERFACE cxx_std_20)

function(pumice_library)
  set(objects "")
  foreach(stage IN LISTS PUMICE_STAGES)
    list(APPEND objects $<TARGET_OBJECTS:pumice_${stage}>)
  endforeach()
  add_library(pumice ${objects})
  add_library(pumice::pumice ALIAS pumice)
  target_link_libraries(pumice
    PUBLIC pumice_includes
    PRIVATE $<BUILD_INTERFACE:pumice_settings> TBB::tbb hwy::hwy fmt::fmt spdlog::spdlog ZLIB::ZLIB
            SQLite::SQLite3 ${CMAKE_DL_LIBS})
endfunction()
