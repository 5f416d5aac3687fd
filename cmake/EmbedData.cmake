# Puts data files into a library, so that the binary runs without an installed folder.
#
# tandem_embed_data(TARGET FUNCTION PATH...): adds a source to TARGET that defines
#   std::span<const tandem::EmbeddedFile> tandem::FUNCTION()    (runtime/embedded_file.h)
# with the files' text. Each PATH counts from the root of the source tree and is the file's name at run time.
#
# The same file, run as a script at build time with -DOUTPUT, -DFUNCTION, -DROOT and -DPATHS, writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  foreach(path IN LISTS PATHS)
    file(READ "${ROOT}/${path}" text)
    string(APPEND entries "    {\"${path}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "#include <span>

#include \"runtime/embedded_file.h\"

namespace tandem {

std::span<const EmbeddedFile> ${FUNCTION}() {
  static constexpr EmbeddedFile files[] = {
${entries}  };
  return files;
}

}  // namespace tandem
")
  return()
endif()

set(TANDEM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tandem_embed_data target function)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE dependencies)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFUNCTION=${function} -DROOT=${PROJECT_SOURCE_DIR} "-DPATHS=${ARGN}" -P ${TANDEM_EMBED_SCRIPT}
    DEPENDS ${dependencies} ${TANDEM_EMBED_SCRIPT}
    COMMENT "Embedding ${function}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
