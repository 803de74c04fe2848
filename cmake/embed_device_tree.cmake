# Writes the headers of a folder into one C++ file, for NVRTC to read from memory:
#   cmake -DROOT=device -DOUTPUT=device_tree.cpp -P embed_device_tree.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/text_literals.cmake)

file(GLOB_RECURSE headers RELATIVE ${ROOT} ${ROOT}/pumice/*.h)
list(FILTER headers EXCLUDE REGEX "_host\\.h$")   # for the host compiler alone
list(SORT headers)
file(WRITE ${OUTPUT}.new "// Generated from the folder device/.\n#include \"jit/device_tree.hpp\"\n\n")
set(table "")
set(number 0)
foreach(header IN LISTS headers)
  file(READ ${ROOT}/${header} text)
  file(APPEND ${OUTPUT}.new "static const std::string_view kPieces${number}[] = {\n")
  append_literals("${text}")
  file(APPEND ${OUTPUT}.new "\"\"};\n\n")
  string(APPEND table "    {\"${header}\", pumice::jit::join(kPieces${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(APPEND ${OUTPUT}.new
  "const std::vector<pumice::jit::DeviceHeader>& pumice::jit::device_tree() {\n"
  "  static const auto& tree = *new std::vector<pumice::jit::DeviceHeader>{\n${table}  };\n"
  "  return tree;\n}\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
