# Debian's SimGrid asks for ns-3, of which Tandem calls nothing: thirty libraries, which take as long to load as a small step takes to
# simulate.
#
# tandem_without_ns3(TARGET LIBRARY): gives TARGET libraries of the names that LIBRARY asks for, to be found in a folder beside it. They
# define what LIBRARY uses of ns-3, and do nothing: what LIBRARY calls as it is opened or closed returns false, and every other
# function ends the program. Where LIBRARY asks for no ns-3 there is nothing to do.
set(TANDEM_WITHOUT_NS3 without_ns3)  # the folder, also where it is installed

# By LIBRARY's static objects, one for each of its sources that includes ns-3.
set(TANDEM_NS3_AT_OPENING _ZN3ns34Time10StaticInitEv _ZN3ns319InternetStackHelperC1Ev _ZN3ns319InternetStackHelperD1Ev)

function(tandem_without_ns3 target library)
  execute_process(COMMAND ${CMAKE_READELF} --wide --dynamic --dyn-syms ${library} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "libns3-[^]]+" names "${listing}")
  if(NOT names)
    return()
  endif()

  set(definitions "")
  string(REGEX MATCHALL "(FUNC|OBJECT|NOTYPE) [^\n]* UND [^\n]*ns3[^\n]*" undefined "${listing}")
  foreach(line IN LISTS undefined)
    string(REGEX REPLACE ".* UND ([^ ]+).*" "\\1" symbol "${line}")
    string(MAKE_C_IDENTIFIER "${symbol}" name)
    if(line MATCHES "^OBJECT")
      string(APPEND definitions "extern char ${name}_[256] __asm__(\"${symbol}\") __attribute__((alias(\"zeros\")));\n")
    elseif(symbol IN_LIST TANDEM_NS3_AT_OPENING)
      string(APPEND definitions "bool ${name}_() __asm__(\"${symbol}\") __attribute__((alias(\"at_opening\")));\n")
    else()
      string(APPEND definitions "void ${name}_() __asm__(\"${symbol}\") __attribute__((alias(\"never\")));\n")
    endif()
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${TANDEM_WITHOUT_NS3}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "extern \"C\" {
char zeros[256];
bool at_opening() { return false; }
void never() { __builtin_trap(); }
@definitions@}
")

  # One file, which goes by all the names.
  set(folder ${PROJECT_BINARY_DIR}/${TANDEM_WITHOUT_NS3})
  add_library(tandem_without_ns3 MODULE ${source})
  set_target_properties(tandem_without_ns3 PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${folder} SKIP_BUILD_RPATH ON)
  target_link_options(tandem_without_ns3 PRIVATE -nostdlib LINKER:-z,relro,-z,now,-z,noexecstack)
  foreach(name IN LISTS names)
    add_custom_command(TARGET tandem_without_ns3 POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink tandem_without_ns3.so ${folder}/${name})
  endforeach()
  add_dependencies(${target} tandem_without_ns3)
  # What a library asks for is looked for in the folders of who opened it.
  set_target_properties(${target} PROPERTIES BUILD_RPATH $ORIGIN/${TANDEM_WITHOUT_NS3} INSTALL_RPATH $ORIGIN/${TANDEM_WITHOUT_NS3})
endfunction()
