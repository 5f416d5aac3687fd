#include "studies/report/page.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "studies/report/embedded_page.h"

namespace tandem::studies {
namespace {

std::string& command() {
  static std::string text;
  return text;
}

/// Quoted where a shell would take it apart.
std::string quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// JSON inside a script element ends where "</" stands, so that must not occur.
std::string inside_script(std::string json) {
  for (std::size_t at = json.find("</"); at != std::string::npos; at = json.find("</", at)) json.replace(at, 2, "<\\/");
  for (std::size_t at = json.find("<!--"); at != std::string::npos; at = json.find("<!--", at)) json.replace(at, 4, "<\\u0021--");
  return json;
}

}  // namespace

void remember_command(int argc, const char* const* argv) {
  command() = "tandem";
  for (int i = 1; i < argc; ++i) command() += " " + quoted(argv[i]);
}

nlohmann::ordered_json report_head(const std::string& kind, const std::string& title) {
  return {{"kind", kind}, {"tandem", TANDEM_VERSION}, {"title", title}, {"command", command()}};
}

std::string report_page(const nlohmann::ordered_json& report) {
  constexpr std::string_view place = "<script type=\"application/json\" id=\"report\">";
  const std::string_view page = embedded_page().front().text;
  const std::size_t begin = page.find(place);
  const std::size_t end = begin == std::string_view::npos ? begin : page.find("</script>", begin);
  if (end == std::string_view::npos) throw std::logic_error("the report's page has no place for its data");
  const std::size_t data = begin + place.size();
  return std::string(page.substr(0, data)) + inside_script(report.dump()) + std::string(page.substr(end));
}

}  // namespace tandem::studies
