# Writes a file into a C++ function that returns its bytes:
#   cmake -DINPUT=a.ttf -DHEADER=cli/b.hpp -DFUNCTION=pumice::cli::c -DOUTPUT=c.cpp -P embed_bytes.cmake
# The header declares std::span<const unsigned char> FUNCTION().
cmake_minimum_required(VERSION 3.22)
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)"
  "\\1\n" bytes "${bytes}")
get_filename_component(name ${INPUT} NAME)
file(WRITE ${OUTPUT}.new "// Generated from ${name}.\n#include \"${HEADER}\"\n\n"
  "static const unsigned char kBytes[] = {\n${bytes}};\n\n"
  "std::span<const unsigned char> ${FUNCTION}() {\n  return kBytes;\n}\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
