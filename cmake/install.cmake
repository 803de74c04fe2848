# `cmake --install`: headers, library, the `pumice` program, and what find_package(pumice) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)

if(BUILD_SHARED_LIBS)
  set_target_properties(pumice PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  # The program finds the library beside it, wherever the two are moved.
  file(RELATIVE_PATH to_library
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(pumice_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
endif()

install(TARGETS pumice pumice_includes EXPORT pumice_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS pumice_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Kernels compiled ahead, where they were (target pumice_bundle). The library finds them from where it
# lies.
install(FILES ${CMAKE_BINARY_DIR}/pumice.bundle
  DESTINATION ${CMAKE_INSTALL_DATADIR}/pumice/kernels OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/models/streets.safetensors
  DESTINATION ${CMAKE_INSTALL_DATADIR}/pumice/models)
# Plans that were tuned for this release, by kind of GPU.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plans DESTINATION ${CMAKE_INSTALL_DATADIR}/pumice
  FILES_MATCHING PATTERN "*.json")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/licenses DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pumice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/device/pumice/shared
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pumice FILES_MATCHING PATTERN "*.h")
install(EXPORT pumice_targets NAMESPACE pumice:: DESTINATION ${package})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pumice-config.cmake.in
  ${PROJECT_BINARY_DIR}/pumice-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pumice-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/pumice-config.cmake
  ${PROJECT_BINARY_DIR}/pumice-config-version.cmake
  DESTINATION ${package})
