# Installation: the program, libbertcl with its headers, a CMake package (find_package(bertcl) gives bertcl::bertcl) and
# a file for pkg-config.
include(CMakePackageConfigHelpers)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/bertcl")

install(TARGETS bertcl_api EXPORT bertclTargets)
install(DIRECTORY include/bertcl DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT bertclTargets NAMESPACE bertcl:: DESTINATION "${package}")
configure_package_config_file(cmake/bertclConfig.cmake.in "${PROJECT_BINARY_DIR}/bertclConfig.cmake"
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bertclConfig.cmake" "${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake"
        DESTINATION "${package}")
file(RELATIVE_PATH prefix_from_pc "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file(cmake/bertcl.pc.in "${PROJECT_BINARY_DIR}/bertcl.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bertcl.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET bertcl)
  install(TARGETS bertcl)  # kernels are part of the program
endif()
# Run by the library and the program, not by hand: engine/opencl/probe_process.cpp looks there.
install(TARGETS bertcl-probe DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/bertcl")
