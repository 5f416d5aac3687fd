# The Debian package: `cpack -G DEB --config build/release/CPackConfig.cmake`, which `./dev package` calls. It has the component
# `program` alone: no headers and libraries, nor the CUDA backend, which asks for libraries that Debian does not have.
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR "The Tandem authors")
set(CPACK_PACKAGE_CONTACT "The Tandem authors <tandem@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "digital twin for one LLM training step on a GPU cluster")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tandem)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "Simulates a training step of a language model on 8 to 131,072 GPUs: step time,
where it goes, memory, and what would change it; searches for the best plan, plays weeks of training with failures, and executes small
steps on CPU threads. With the Python package tandem.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS libopenblas0)  # opened at run time, by `tandem execute`
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS python3-pandas)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/prerm)
include(CPack)
