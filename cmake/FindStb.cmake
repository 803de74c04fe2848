# Finds stb_truetype, a header of its own: the target Stb::truetype.
find_path(STB_TRUETYPE_INCLUDE_DIR stb_truetype.h PATH_SUFFIXES stb)
mark_as_advanced(STB_TRUETYPE_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Stb REQUIRED_VARS STB_TRUETYPE_INCLUDE_DIR)
if(Stb_FOUND AND NOT TARGET Stb::truetype)
  add_library(Stb::truetype INTERFACE IMPORTED)
  set_target_properties(Stb::truetype PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${STB_TRUETYPE_INCLUDE_DIR})   # as the system's, whose warnings are not ours
endif()
