# `cmake --install`, and what `find_package(pumice)` finds afterwards.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS pumice pumice_includes EXPORT pumice_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS pumice_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/pumice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY device/pumice/shared DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pumice)
install(EXPORT pumice_targets NAMESPACE pumice::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
configure_package_config_file(cmake/pumice-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/pumice-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pumice-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/pumice-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/pumice-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pumice)
