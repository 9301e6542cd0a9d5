# SPDX-License-Identifier: Apache-2.0
# The CMake package; the targets' own install rules are in ShoalTargets.cmake.
include_guard()
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shoal)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/shoalConfig.cmake.in
  ${PROJECT_BINARY_DIR}/shoalConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface, as the libraries' SOVERSION says too.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shoalConfig.cmake ${PROJECT_BINARY_DIR}/shoalConfigVersion.cmake
  DESTINATION ${package_dir})
install(EXPORT shoalTargets NAMESPACE shoal:: DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
