#include "studies/report/page.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "studies/report/embedded_page.h"

namespace tandem::studies {
namespace {

/// JSON inside a script element ends where "</" stands, so that must not occur.
std::string inside_script(std::string json) {
  for (std::size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at)) json.replace(at, 2, "<\\/");
  for (std::size_t at = json.find("<!--"); at != std::string::npos; at = json.find("<!--", at)) json.replace(at, 4, "<\\u0021--");
  return json;
}

}  // namespace

nlohmann::ordered_json report_head(const std::string& kind, const std::string& title, const std::string& command) {
  return {{"kind", kind}, {"tandem", TANDEM_VERSION}, {"title", title}, {"command", command}};
}

void require_report_page() {
  if (embedded_page().empty())
    throw std::runtime_error("this program was built without its report page, which takes npm; `./dev build` installs that");
}

std::string report_page(const nlohmann::ordered_json& report) {
  constexpr std::string_view place = "<script type=\"application/json\" id=\"report\">";
  require_report_page();
  const std::string_view page = embedded_page().front().text;
  const std::size_t begin = page.find(place);
  const std::size_t end = begin == std::string_view::npos ? begin : page.find("</script>", begin);
  if (end == std::string_view::npos) throw std::logic_error("the report's page has no place for its data");
  const std::size_t data = begin + place.size();
  return std::string(page.substr(0, data)) + inside_script(report.dump()) + std::string(page.substr(end));
}

}  // namespace tandem::studies
