# What makes a mistake in memory end a program, rather than do what a file's author meant it to. For programs that are released:
# sanitizers see more, and want none of it. tests/hardening.sh looks at what comes out.
include(CheckCXXCompilerFlag)
function(tandem_harden target)
  if(TANDEM_SANITIZE OR NOT CMAKE_BUILD_TYPE MATCHES "Release|RelWithDebInfo|MinSizeRel")
    return()
  endif()
  foreach(flag -fstack-protector-strong -fstack-clash-protection)
    string(MAKE_C_IDENTIFIER "TANDEM_HAS${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      target_compile_options(${target} INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${flag}>)
    endif()
  endforeach()
  # Some distributions define a lower level already.
  target_compile_options(${target} INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>)
  target_link_options(${target} INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
endfunction()
