# tandem-run to be carried to a cluster whose machines have other libraries, or none: with the static ones of this machine, so that
# only the C library with libgcc_s, which every glibc system has, and, for the CUDA backend, CUDA's own are asked for there. The
# program and the backend share libgcc_s: exceptions pass between them, and two unwinders would abort.
add_library(tandem_log INTERFACE)
target_compile_definitions(tandem_log INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
set(TANDEM_SPDLOG tandem_log)
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_library(TANDEM_STATIC_OPENBLAS libopenblas.a REQUIRED)
pkg_check_modules(OPENBLAS_HEADERS REQUIRED openblas)
add_library(PkgConfig::OPENBLAS STATIC IMPORTED)
set_target_properties(PkgConfig::OPENBLAS PROPERTIES IMPORTED_LOCATION ${TANDEM_STATIC_OPENBLAS}
                                                     INTERFACE_INCLUDE_DIRECTORIES "${OPENBLAS_HEADERS_INCLUDE_DIRS}"
                                                     INTERFACE_LINK_LIBRARIES "-Wl,-Bstatic;-lgfortran;-lquadmath;-Wl,-Bdynamic;m;Threads::Threads")
add_link_options(-static-libstdc++)

add_subdirectory(runtime)
add_subdirectory(traces)
add_subdirectory(cli/run)
