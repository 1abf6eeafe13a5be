# Installation: the program, the libraries with their headers, and a CMake package: find_package(bertcl)
# gives bertcl::runtime, bertcl::squad and so on. Headers lie below include/bertcl by their folders.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(headers "${CMAKE_INSTALL_INCLUDEDIR}/bertcl")
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/bertcl")

get_property(libraries GLOBAL PROPERTY BERTCL_LIBRARIES)
list(REMOVE_ITEM libraries bertcl_tools)  # the commands of the program are no interface
install(TARGETS ${libraries} bertcl_settings EXPORT bertclTargets)
install(DIRECTORY engine/include/ DESTINATION "${headers}" FILES_MATCHING PATTERN "*.hpp")
install(DIRECTORY engine/ DESTINATION "${headers}" FILES_MATCHING PATTERN "*.hpp" PATTERN include EXCLUDE)
foreach(folder text squad tasks quant)
  install(DIRECTORY ${folder} DESTINATION "${headers}" FILES_MATCHING PATTERN "*.hpp")
endforeach()

install(EXPORT bertclTargets NAMESPACE bertcl:: DESTINATION "${package}")
configure_package_config_file(cmake/bertclConfig.cmake.in "${PROJECT_BINARY_DIR}/bertclConfig.cmake"
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bertclConfig.cmake" "${PROJECT_BINARY_DIR}/bertclConfigVersion.cmake"
        DESTINATION "${package}")

install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET bertcl)
  install(TARGETS bertcl)  # kernels are part of the program
endif()
# Run by the libraries and the program, not by hand: engine/opencl/probe_process.cpp looks there.
install(TARGETS bertcl-probe DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/bertcl")
