# Puts the shared libraries that the extension and the program need and that a system need not have
# where their run paths lead. Left to the system: libc, libm, libstdc++, libgcc and zlib, which every
# manylinux system has.
file(GET_RUNTIME_DEPENDENCIES
  MODULES ${extension}
  EXECUTABLES ${program}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_INCLUDE_REGEXES "tbb" "hwy" "fmt" "spdlog" "png" "sqlite3"
  PRE_EXCLUDE_REGEXES ".*")
if(missing)
  message(FATAL_ERROR "the package needs ${missing}, and no such library was found")
endif()
foreach(library IN LISTS found)
  get_filename_component(file ${library} REALPATH)
  get_filename_component(name ${library} NAME)
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/pumice/lib" TYPE PROGRAM
    FILES ${file} RENAME ${name})
endforeach()
