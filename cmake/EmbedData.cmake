# Puts data files into a library, so that the binary runs without an installed folder.
#
# tandem_embed_data(TARGET FUNCTION PATH...): adds a source to TARGET that defines
#   std::span<const tandem::EmbeddedFile> tandem::FUNCTION()    (runtime/base/embedded_file.h); FUNCTION may name a namespace
# with the files' text. Each PATH counts from the root of the source tree and is the file's name at run time. A generated file's
# is absolute, and its name at run time is the last part of it.
#
# The same file, run as a script at build time with -DOUTPUT, -DFUNCTION, -DROOT and -DPATHS, writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  string(REGEX MATCH "^(.*::)?" NAMESPACE "${FUNCTION}")
  string(REGEX REPLACE "^.*::" "" FUNCTION "${FUNCTION}")
  string(REGEX REPLACE "::$" "" NAMESPACE "tandem::${NAMESPACE}")
  set(entries "")
  foreach(path IN LISTS PATHS)
    cmake_path(IS_ABSOLUTE path generated)
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE file)
    if(generated)
      cmake_path(GET path FILENAME path)
    endif()
    file(READ "${file}" text)
    string(APPEND entries "    {\"${path}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(body "return {};")
  if(entries)
    set(body "static constexpr EmbeddedFile files[] = {
${entries}  };
  return files;")
  endif()
  file(WRITE "${OUTPUT}" "#include <span>

#include \"runtime/base/embedded_file.h\"

namespace ${NAMESPACE} {

std::span<const EmbeddedFile> ${FUNCTION}() {
  ${body}
}

}  // namespace ${NAMESPACE}
")
  return()
endif()

set(TANDEM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tandem_embed_data target function)
  string(REPLACE "::" "_" name ${function})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(dependencies ${ARGN})
  list(TRANSFORM dependencies PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^[^/]")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFUNCTION=${function} -DROOT=${PROJECT_SOURCE_DIR} "-DPATHS=${ARGN}" -P ${TANDEM_EMBED_SCRIPT}
    DEPENDS ${dependencies} ${TANDEM_EMBED_SCRIPT}
    COMMENT "Embedding ${function}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
