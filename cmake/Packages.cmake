# CPack: packages for Debian and an archive that can be unpacked anywhere; tools/package makes both. Built on Debian 12
# they hold on Debian 13, too: a library whose soname differs between the two comes along, in a folder of bertcl's own.
install(DIRECTORY models/minilm-l6-squad DESTINATION "${CMAKE_INSTALL_DATADIR}/bertcl/models"
        COMPONENT ${model_component} EXCLUDE_FROM_ALL)
install(FILES models/minilm-l6-squad/LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${model_component}"
        RENAME copyright COMPONENT ${model_component} EXCLUDE_FROM_ALL)
foreach(component ${program_component} ${library_component} ${development_component})
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${component}" RENAME copyright
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT ${program_component})

# Not part of `cmake --install`, which serves the machine that it runs on.
set(bundled "^lib(cpp-httplib|fmt|icudata|icui18n|icuuc|onnx_proto|prometheus-cpp-core|protobuf|zip)[.]so")
install(CODE "
  set(programs \"$<TARGET_FILE:bertcl>\" \"$<TARGET_FILE:bertcl-probe>\")
  set(library \"$<TARGET_FILE:bertcl_api>\")
  set(bundled \"${bundled}\")
  set(destination \"${private_libraries}\")"
  COMPONENT ${library_component} EXCLUDE_FROM_ALL)
install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/BundleLibraries.cmake" COMPONENT ${library_component} EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME bertcl)
set(CPACK_PACKAGE_CONTACT "the bertcl developers <bertcl@localhost>")
set(CPACK_PACKAGE_VENDOR bertcl)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "int8 BERT inference on any OpenCL device")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_ALL ${program_component} ${library_component} ${development_component} ${model_component})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/PackageLayout.cmake")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
# The names that both releases have; the C library is that of the build or newer.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE libc OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REGEX REPLACE "^glibc " "" libc "${libc}")
string(REGEX MATCH "^[0-9]+" compiler "${CMAKE_CXX_COMPILER_VERSION}")
set(runtime "libc6 (>= ${libc}), libstdc++6 (>= ${compiler}), libgcc-s1, ocl-icd-libopencl1 | libopencl1")
string(APPEND runtime ", libclblast1, libssl3 | libssl3t64, libbrotli1, zlib1g, libbz2-1.0, liblzma5, libzstd1")
set(exact "(= ${PROJECT_VERSION})")

macro(debian_package component name description)
  string(TOUPPER "${component}" upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}")
endmacro()
debian_package(${program_component} bertcl "The program: it reads, quantizes, evaluates and runs BERT models in ONNX files.")
set(CPACK_DEBIAN_BERTCL_PACKAGE_DEPENDS
    "libbertcl0 ${exact}, ${runtime}, pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_BERTCL_PACKAGE_RECOMMENDS bertcl-model-minilm-l6-squad)
debian_package(${library_component} libbertcl0 "The library: what programs in C++, C and Python link, and the probe that finds what a device can do.")
set(CPACK_DEBIAN_LIBBERTCL0_PACKAGE_DEPENDS "${runtime}")
set(CPACK_DEBIAN_LIBBERTCL0_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_LIBBERTCL0_PACKAGE_SECTION libs)
set(control "${PROJECT_BINARY_DIR}/debian")
file(WRITE "${control}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${control}/shlibs" "libbertcl 0 libbertcl0 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBBERTCL0_PACKAGE_CONTROL_EXTRA "${control}/triggers" "${control}/shlibs")
debian_package(${development_component} libbertcl-dev "For development: headers in C++ and C, a CMake package and a file for pkg-config.")
set(CPACK_DEBIAN_LIBBERTCL-DEV_PACKAGE_DEPENDS "libbertcl0 ${exact}, bertcl ${exact}, opencl-c-headers | opencl-headers, ocl-icd-opencl-dev")
set(CPACK_DEBIAN_LIBBERTCL-DEV_PACKAGE_SECTION libdevel)
debian_package(${model_component} bertcl-model-minilm-l6-squad "The default model of bertcl in fp32, with its vocabulary.")
set(CPACK_DEBIAN_BERTCL-MODEL-MINILM-L6-SQUAD_PACKAGE_ARCHITECTURE all)
include(CPack)
