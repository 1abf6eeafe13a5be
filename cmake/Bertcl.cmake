# Compiler settings shared by every target, and the two functions that declare targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

add_library(bertcl_settings INTERFACE)
target_compile_options(bertcl_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow=local -Wconversion -Wno-sign-conversion
  # GCC 12 warns of std::string operator+ (bug 105329), and spends a tenth of its time collecting garbage (GCC 12.2)
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict --param=ggc-min-heapsize=500000>
  # The macros of GoogleTest hold __FILE__: without the folder, ccache finds in one clone what another has compiled.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
option(BERTCL_WERROR "Treat warnings as errors" OFF)  # tools/build sets it: compilers of tomorrow warn of more
if(BERTCL_WERROR)
  target_compile_options(bertcl_settings INTERFACE -Werror)
endif()

# For code whose speed does not matter: it compiles in two thirds of the time.
set(bertcl_cold $<$<CONFIG:Release>:-O1>)
# For tests and commands: they compile in two thirds of the time of -O1, and warnings that need flow analysis stay.
set(bertcl_colder $<$<CONFIG:Release>:-Og>)

# In unity builds, files per unit; their headers take half the time of a small one.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)

# bertcl_library(NAME text [COLD] DEPENDS bertcl_ir fmt::fmt ...): all *.cpp of the current folder as bertcl_<NAME>;
# COLD: their speed does not matter.
function(bertcl_library)
  cmake_parse_arguments(arg "COLD" "NAME" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(bertcl_${arg_NAME} STATIC ${sources})
  target_include_directories(bertcl_${arg_NAME} PUBLIC
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/engine" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(bertcl_${arg_NAME} PUBLIC ${arg_DEPENDS} PRIVATE bertcl_settings)
  target_compile_features(bertcl_${arg_NAME} PUBLIC cxx_std_20)
  if(arg_COLD)
    target_compile_options(bertcl_${arg_NAME} PRIVATE ${bertcl_cold})
  endif()
endfunction()

# bertcl_test(NAME test_text [ON_DEVICE [INTEL_FILTER X.*:Y.*]] DEPENDS bertcl_text ...): all *.cpp of the current
# folder as one GoogleTest program. ON_DEVICE: it launches kernels, so it runs once more under a second implementation
# of OpenCL (label intel), there with the tests of INTEL_FILTER alone, where given.
function(bertcl_test)
  cmake_parse_arguments(arg "ON_DEVICE" "NAME;INTEL_FILTER" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_executable(${arg_NAME} ${sources})
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/engine"
                                                 "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPENDS} test_files test_values GTest::gtest
                                            GTest::gmock GTest::gtest_main bertcl_settings)
  target_compile_options(${arg_NAME} PRIVATE ${bertcl_colder})
  # In unity builds: twice as many files as elsewhere, since the headers of GoogleTest and JSON take most of the time.
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD_BATCH_SIZE 32)
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME})
  if(TARGET bertcl-probe)
    add_dependencies(${arg_NAME} bertcl-probe)  # capabilities are found by it
  endif()
  if(arg_ON_DEVICE)
    set_tests_properties(${arg_NAME} PROPERTIES LABELS device COST 100)  # ctest begins with those of high cost
    if(NOT arg_INTEL_FILTER)
      set(arg_INTEL_FILTER "*")
    endif()
    add_test(NAME ${arg_NAME}_intel COMMAND "${PROJECT_SOURCE_DIR}/tests/opencl/on_intel" "${PROJECT_BINARY_DIR}"
                                            "$<TARGET_FILE:${arg_NAME}>" "--gtest_filter=${arg_INTEL_FILTER}")
    set_tests_properties(${arg_NAME}_intel PROPERTIES LABELS intel COST 200 SKIP_RETURN_CODE 77)
  endif()
endfunction()
