# Writes the parts of the page of `pumice view --html` into one C++ file:
#   cmake -DROOT=cli/page -DOUTPUT=page_parts.cpp -P embed_page.cmake
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/text_literals.cmake)

file(WRITE ${OUTPUT}.new "// Generated from the folder cli/page.\n#include \"cli/page.hpp\"\n\n")
set(table "")
set(number 0)
foreach(part IN ITEMS page.html page.css view.js draw.js panel.js)
  file(READ ${ROOT}/${part} text)
  file(APPEND ${OUTPUT}.new "static const std::string_view kPieces${number}[] = {\n")
  append_literals("${text}")
  file(APPEND ${OUTPUT}.new "\"\"};\n\n")
  string(APPEND table "  if (name == \"${part}\") return kPieces${number};\n")
  math(EXPR number "${number} + 1")
endforeach()
file(APPEND ${OUTPUT}.new
  "std::span<const std::string_view> pumice::cli::page_part(std::string_view name) {\n"
  "${table}  return {};\n}\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
