# One static library per folder. Sources are globbed, so that a new file needs no edit here; includes are written from the root.
add_library(tandem_options INTERFACE)
target_include_directories(tandem_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(tandem_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual>
  $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra>  # -Wpedantic complains of what nvcc itself writes
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TANDEM_WERROR}>>:-Werror>
  $<$<AND:$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>,$<BOOL:${TANDEM_WERROR}>>:-Werror=all-warnings>)
if(TANDEM_UNITY)  # where what is a file's own is a global to its neighbours, and seems to be a header's
  target_compile_options(tandem_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-shadow> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(TANDEM_SANITIZE)
  target_compile_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()
if(TANDEM_SANITIZE MATCHES fuzzer)  # these checks are a quarter of the time to compile; the preset asan has them
  target_compile_options(tandem_options INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
endif()

tandem_harden(tandem_options)

# tandem_unity(TARGET): with TANDEM_UNITY, compiles the target's sources in units of up to a dozen files of one folder. Parsing headers
# is most of the work, and a unit does it once. So two files of one folder may not give two things the same name, not even in
# anonymous namespaces; to compile files one by one (and to find a missing include) turn TANDEM_UNITY off.
function(tandem_unity target)
  if(NOT TANDEM_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/.*\\.cpp$")
  list(SORT sources)
  set(last "")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT folder STREQUAL last)
      set(last ${folder})
      set(files 0)
    endif()
    math(EXPR unit "${files} / 12")
    math(EXPR files "${files} + 1")
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE group)
    string(REPLACE "/" "_" group ${group})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${unit})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# tandem_module(NAME SOURCE LIBRARY..): a shared library that programs open when they first need it (runtime/base/open_module.h). They find
# it in the folders that they name: here, their own.
function(tandem_module name source)
  add_library(${name} MODULE ${source})
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
  target_link_libraries(${name} PRIVATE tandem_options ${ARGN})
  if(NOT TANDEM_SANITIZE)  # whose runtime is the program's
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# tandem_library(NAME [sources' folders ...]): defaults to the current folder alone.
function(tandem_library name)
  set(globs ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder ${ARGN})
    list(APPEND globs ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:tandem_options>)
  tandem_unity(${name})
  string(REGEX REPLACE "^tandem_" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(tandem::${short} ALIAS ${name})
endfunction()
