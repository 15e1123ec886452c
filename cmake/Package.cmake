# Rules of `cmake --install`: library, headers, command, manual page, completions and the files of find_package(dyad).
include(CMakePackageConfigHelpers)

install(TARGETS dyad EXPORT dyadTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS dyad_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/dyad.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/dyad.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME dyad)
install(FILES ${PROJECT_BINARY_DIR}/dyad.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _dyad)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dyad ${PROJECT_BINARY_DIR}/include/dyad
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT dyadTargets NAMESPACE dyad:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dyad)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dyadConfig.cmake.in ${PROJECT_BINARY_DIR}/dyadConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dyad)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dyadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dyadConfig.cmake ${PROJECT_BINARY_DIR}/dyadConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dyad)

# Debian package: `cpack -G DEB` in the build folder, after dyad_cli is built. The Python package is not part of it.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_PACKAGE_NAME dyad-ml)
set(CPACK_PACKAGE_VENDOR "dyad maintainers")
set(CPACK_PACKAGE_CONTACT "dyad maintainers <maintainers@dyad.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "second-order models with error bars, for tables, ratings and streams")
set(CPACK_PACKAGE_DESCRIPTION "The command dyad, the C++ library with its headers, the manual page and the shell completions.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};dyad;Unspecified;/")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Headers and static library: what a program that uses find_package(dyad) has to install besides.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libopenblas-pthread-dev, zlib1g-dev, libzstd-dev")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/dyad-ml RENAME copyright)
include(CPack)
