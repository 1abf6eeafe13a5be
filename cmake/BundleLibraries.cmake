# Run by `cmake --install`: copies the libraries of `bundled` (a pattern) that `programs` and `library` need into
# `destination` below the prefix, and beside each the copyright of the Debian package that it is of.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} LIBRARIES ${library}
     RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing)
if(missing)
  message(FATAL_ERROR "libraries that bertcl needs are missing: ${missing}")
endif()
foreach(file IN LISTS found)
  get_filename_component(name "${file}" NAME)
  if(name MATCHES "${bundled}")
    get_filename_component(real "${file}" REALPATH)
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${destination}" TYPE FILE PERMISSIONS OWNER_READ OWNER_WRITE
         GROUP_READ WORLD_READ RENAME "${name}" FILES "${real}")
    execute_process(COMMAND dpkg-query -S "${real}" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(NOT owner)  # /lib may be a link to /usr/lib, and packages name their files by it
      string(REGEX REPLACE "^/usr" "" linked "${real}")
      execute_process(COMMAND dpkg-query -S "${linked}" OUTPUT_VARIABLE owner ERROR_QUIET)
    endif()
    string(REGEX REPLACE ":.*" "" owner "${owner}")
    if(owner AND EXISTS "/usr/share/doc/${owner}/copyright")
      file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${destination}" TYPE FILE RENAME "${owner}.copyright"
           FILES "/usr/share/doc/${owner}/copyright")
    endif()
  endif()
endforeach()
