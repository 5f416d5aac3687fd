# The report's page, viz/report.html, goes into the library. `./dev page` builds it anew from viz/src with npm; a build of Tandem needs
# no npm, and the browser tests hold the file equal to its sources.
include(EmbedData)

# tandem_embed_report_page(TARGET): gives TARGET `tandem::studies::embedded_page()` (studies/report/embedded_page.h).
function(tandem_embed_report_page target)
  tandem_embed_data(${target} studies::embedded_page viz/report.html)
endfunction()
