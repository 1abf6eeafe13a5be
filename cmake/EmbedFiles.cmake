# bertcl_embed_files(TARGET TEMPLATE FILE...): texts as string literals of the program. TEMPLATE, a .cpp.in with an
# @EMBEDDED_name@ for each file ("page.css" is page_css), becomes a source of TARGET. Texts are put in line by line, since
# compilers limit the length of a literal.
function(bertcl_embed_files target template)
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(REPLACE "\n" "\n)FILE\"\n    R\"FILE(" text "${text}")
    get_filename_component(name "${file}" NAME)
    string(MAKE_C_IDENTIFIER "${name}" name)
    set(EMBEDDED_${name} "${text}")
  endforeach()
  get_filename_component(source "${template}" NAME_WLE)
  configure_file("${template}" "${source}" @ONLY)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${source}")
endfunction()
