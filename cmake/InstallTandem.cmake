# What `cmake --install` installs: programs, libraries, headers, the CUDA backend where it is built, and TandemConfig.cmake for
# find_package(Tandem). Includes read as they do here ("studies/step/simulated_step.h"): the targets know where the headers are.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries tandem_runtime tandem_topology tandem_traces tandem_scenarios tandem_sim tandem_studies)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tandem)
foreach(library IN LISTS libraries)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tandem>)
endforeach()
install(TARGETS ${libraries} tandem_everything EXPORT TandemTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT development)
install(EXPORT TandemTargets NAMESPACE tandem:: DESTINATION ${package} COMPONENT development)

# Left out: what belongs to the CUDA module, and what shows the messages of traces/*.proto.
foreach(folder runtime topology traces scenarios sim studies)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  list(FILTER headers EXCLUDE REGEX "^runtime/cuda/(module|emulation)/|^runtime/ops/.*_device\\.h$|^traces/(own_file|tables)\\.h$")
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder_of_header)
    install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/${folder_of_header}
            COMPONENT development)
  endforeach()
endforeach()

# Modules are in lib/tandem, and cmake/package.sh puts libraries beside them.
set_target_properties(tandem tandem-run PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/tandem;$ORIGIN/../lib/tandem/libraries")
set(programs tandem tandem-run)
set(modules tandem_simgrid tandem_http)
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS ${modules} LIBRARY DESTINATION lib/tandem COMPONENT program)
# Tests read the list, the bill of materials (sbom.py) the file.
set(shipped ${programs} ${modules})
list(TRANSFORM shipped REPLACE "(.+)" "$<TARGET_FILE:\\1>")
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/shipped CONTENT "$<JOIN:${shipped},\n>\n")
if(TARGET tandem_without_ns3)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/${TANDEM_WITHOUT_NS3} DESTINATION lib/tandem COMPONENT program USE_SOURCE_PERMISSIONS)
endif()
# Completions, as the program itself prints them; Debian's zsh looks for them in a folder of its own.
foreach(shell_and_file "bash;bash-completion/completions/tandem" "zsh;zsh/site-functions/_tandem" "zsh;zsh/vendor-completions/_tandem")
  list(GET shell_and_file 0 shell)
  list(GET shell_and_file 1 file)
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/${file}\")
    message(STATUS \"Installing: \${file}\")
    execute_process(COMMAND \"$<TARGET_FILE:tandem>\" completion ${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE \"\${file}\" \"\${script}\")" COMPONENT program)
endforeach()
if(TANDEM_HAS_CUDA)
  install(TARGETS tandem_cuda LIBRARY DESTINATION lib/tandem COMPONENT gpu)  # see runtime/cuda/open_gpu.cpp
endif()

# What the programs do not need, as presets are within them, but people do. python/tandem/program.py looks for scenarios here.
set(data ${CMAKE_INSTALL_DATADIR}/tandem/scenarios)
file(GLOB scenarios CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/*.yaml)
install(FILES ${scenarios} DESTINATION ${data} COMPONENT program)
foreach(folder placements presets runs studies textbook)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/${folder} DESTINATION ${data} COMPONENT program)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program PATTERN examples EXCLUDE)
install(FILES AGENTS.md CHANGELOG.md README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
install(FILES docs/tandem.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/tandem DESTINATION lib/python3/dist-packages COMPONENT program
        FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE PATTERN .mypy_cache EXCLUDE)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TandemConfig.cmake.in ${PROJECT_BINARY_DIR}/TandemConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TandemConfig.cmake ${PROJECT_BINARY_DIR}/TandemConfigVersion.cmake DESTINATION ${package}
        COMPONENT development)
