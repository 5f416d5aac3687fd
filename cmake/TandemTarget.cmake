# One static library per folder. Sources are globbed, so that a new file needs no edit here; includes are written from the root.
add_library(tandem_options INTERFACE)
target_include_directories(tandem_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tandem_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual>
  $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra>  # -Wpedantic complains of what nvcc itself writes
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TANDEM_WERROR}>>:-Werror>
  $<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<BOOL:${TANDEM_WERROR}>>:-Werror=all-warnings>)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()

# tandem_library(NAME [sources' folders ...]): defaults to the current folder alone.
function(tandem_library name)
  set(globs ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder ${ARGN})
    list(APPEND globs ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC tandem_options)
endfunction()
