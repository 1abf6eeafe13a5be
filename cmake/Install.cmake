# Installation: the program, libbertcl with its headers, a CMake package (find_package(bertcl) gives bertcl::bertcl, and
# the programs as bertcl::program and bertcl::probe) and a file for pkg-config.
include(CMakePackageConfigHelpers)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/bertcl")

# Other builds name the targets alike, whether bertcl is installed or part of the build (python/CMakeLists.txt).
set_target_properties(bertcl PROPERTIES EXPORT_NAME program)
set_target_properties(bertcl-probe PROPERTIES EXPORT_NAME probe)
add_library(bertcl::bertcl ALIAS bertcl_api)
add_executable(bertcl::program ALIAS bertcl)
add_executable(bertcl::probe ALIAS bertcl-probe)

install(TARGETS bertcl_api bertcl EXPORT bertclTargets)  # kernels are part of the program
# Run by the library and the program, not by hand: engine/opencl/probe_process.cpp looks there.
install(TARGETS bertcl-probe EXPORT bertclTargets DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/bertcl")
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

# OPTIONAL: absent where the program alone was built, or for another machine.
set(help "${PROJECT_BINARY_DIR}/help")
install(FILES "${help}/bertcl.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
install(FILES "${help}/bertcl" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" OPTIONAL)
install(FILES "${help}/_bertcl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
install(FILES "${help}/bertcl.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" OPTIONAL)

install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
