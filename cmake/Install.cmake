# Installation: the program, libbertcl with its headers, a CMake package (find_package(bertcl) gives bertcl::bertcl, and
# the programs as bertcl::program and bertcl::probe) and a file for pkg-config. Components are Debian's packages
# (Packages.cmake).
include(CMakePackageConfigHelpers)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/bertcl")
set(program_component bertcl)
set(library_component libbertcl0)
set(development_component libbertcl-dev)
set(model_component bertcl-model-minilm-l6-squad)

# Other builds name the targets alike, whether bertcl is installed or part of the build (python/CMakeLists.txt).
set_target_properties(bertcl PROPERTIES EXPORT_NAME program)
set_target_properties(bertcl-probe PROPERTIES EXPORT_NAME probe)
add_library(bertcl::bertcl ALIAS bertcl_api)
add_executable(bertcl::program ALIAS bertcl)
add_executable(bertcl::probe ALIAS bertcl-probe)

# Where packages and wheels put the libraries that differ between releases of a system. RPATH and not RUNPATH: it holds
# for what these libraries need in turn. A wheel has all in one folder.
set(private_libraries "${CMAKE_INSTALL_LIBDIR}/bertcl")
set_target_properties(bertcl_api PROPERTIES INSTALL_RPATH "$ORIGIN/bertcl")
set_target_properties(bertcl PROPERTIES INSTALL_RPATH "$ORIGIN/../${private_libraries};$ORIGIN/bertcl")
set_target_properties(bertcl-probe PROPERTIES INSTALL_RPATH "$ORIGIN/../../${private_libraries};$ORIGIN/bertcl")
foreach(target bertcl_api bertcl bertcl-probe)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN/bertcl")
  target_link_options(${target} PRIVATE "LINKER:--disable-new-dtags")
endforeach()

install(TARGETS bertcl EXPORT bertclTargets COMPONENT ${program_component})  # kernels are part of the program
install(TARGETS bertcl_api EXPORT bertclTargets COMPONENT ${library_component}
        LIBRARY NAMELINK_COMPONENT ${development_component})
# Run by the library and the program, not by hand: engine/opencl/probe/probe_process.cpp looks there.
install(TARGETS bertcl-probe EXPORT bertclTargets DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/bertcl"
        COMPONENT ${library_component})
install(DIRECTORY include/bertcl DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT ${development_component})
install(EXPORT bertclTargets NAMESPACE bertcl:: DESTINATION "${package}" COMPONENT ${development_component})
configure_package_config_file(cmake/bertclConfig.cmake.in "${PROJECT_BINARY_DIR}/bertclConfig.cmake"
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bertclConfig.cmake" "${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake"
        DESTINATION "${package}" COMPONENT ${development_component})
file(RELATIVE_PATH prefix_from_pc "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file(cmake/bertcl.pc.in "${PROJECT_BINARY_DIR}/bertcl.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bertcl.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT ${development_component})
install(FILES README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ${program_component})

include(Packages)
