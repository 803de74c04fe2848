# Writes the headers of a folder into one C++ file, for NVRTC to read from memory:
#   cmake -DROOT=device -DOUTPUT=device_tree.cpp -P embed_device_tree.cmake
# Text is cut at line ends into literals of at most 16,000 bytes: compilers need to take no more than
# 65,536, and one of them takes no more than 16,380.
cmake_minimum_required(VERSION 3.22)
set(most 16000)

function(append_literals text)
  string(LENGTH "${text}" left)
  while(left GREATER 0)
    string(SUBSTRING "${text}" 0 ${most} piece)
    if(left GREATER most)
      string(FIND "${piece}" "\n" line_end REVERSE)
      if(line_end LESS 0)
        message(FATAL_ERROR "a line of more than ${most} bytes")
      endif()
      math(EXPR length "${line_end} + 1")
      string(SUBSTRING "${text}" 0 ${length} piece)
      string(SUBSTRING "${text}" ${length} -1 text)
    else()
      set(text "")
    endif()
    file(APPEND ${OUTPUT}.new "R\"pumice~(${piece})pumice~\",\n")
    string(LENGTH "${text}" left)
  endwhile()
endfunction()

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
