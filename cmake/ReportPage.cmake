# The report's page, built by npm from viz/ into one file that goes into the binary (studies/report/embedded_page.h).
#
# TANDEM_REPORT_PAGE: AUTO builds it where npm is found, ON fails without npm, OFF leaves it out; then `--report` says so.
include(EmbedData)

set(TANDEM_REPORT_PAGE AUTO CACHE STRING "Build the HTML report's page: AUTO, ON or OFF")
set_property(CACHE TANDEM_REPORT_PAGE PROPERTY STRINGS AUTO ON OFF)

# tandem_embed_report_page(TARGET): gives TARGET `tandem::embedded_page()`.
function(tandem_embed_report_page target)
  set(page "")
  if(TANDEM_REPORT_PAGE)
    find_program(TANDEM_NPM npm)
    if(NOT TANDEM_NPM AND TANDEM_REPORT_PAGE STREQUAL "ON")
      message(FATAL_ERROR "TANDEM_REPORT_PAGE is ON and there is no npm")
    endif()
  endif()
  if(TANDEM_REPORT_PAGE AND TANDEM_NPM)
    set(viz ${PROJECT_SOURCE_DIR}/viz)
    set(page ${PROJECT_BINARY_DIR}/viz/report.html)
    set(installed ${viz}/node_modules/.package-lock.json)
    add_custom_command(
      OUTPUT ${installed}
      COMMAND ${TANDEM_NPM} ci --no-audit --no-fund --loglevel=error
      DEPENDS ${viz}/package-lock.json
      WORKING_DIRECTORY ${viz}
      COMMENT "Installing what the report's page is built with")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${viz}/src/*)
    add_custom_command(
      OUTPUT ${page}
      COMMAND ${TANDEM_NPM} run --silent build -- --outDir ${PROJECT_BINARY_DIR}/viz --logLevel warn
      DEPENDS ${installed} ${sources} ${viz}/package.json ${viz}/vite.config.ts
      WORKING_DIRECTORY ${viz}
      COMMENT "Building the report's page")
  elseif(TANDEM_REPORT_PAGE)
    message(STATUS "No npm here: tandem is built without its report page")
  endif()
  if(page)
    target_compile_definitions(${target} PUBLIC TANDEM_HAS_REPORT_PAGE)
  endif()
  tandem_embed_data(${target} studies::embedded_page ${page})
endfunction()
