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
