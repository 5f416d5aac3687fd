# Puts data files into a library, so that the binary runs without an installed folder.
#
# tandem_embed_data(TARGET PATH...): adds a source to TARGET that defines tandem::embedded_files() (scenarios/embedded_files.h)
# with the files' text. Each PATH counts from the root of the source tree and is the file's name at run time.
#
# The same file, run as a script at build time with -DOUTPUT, -DROOT and -DPATHS, writes that source.
if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  foreach(path IN LISTS PATHS)
    file(READ "${ROOT}/${path}" text)
    string(APPEND entries "    {\"${path}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "#include \"scenarios/embedded_files.h\"

namespace tandem {

std::span<const EmbeddedFile> embedded_files() {
  static constexpr EmbeddedFile files[] = {
${entries}  };
  return files;
}

}  // namespace tandem
")
  return()
endif()

set(TANDEM_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tandem_embed_data target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_files.cpp)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE dependencies)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} "-DPATHS=${ARGN}" -P ${TANDEM_EMBED_SCRIPT}
    DEPENDS ${dependencies} ${TANDEM_EMBED_SCRIPT}
    COMMENT "Embedding presets and profiles"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
