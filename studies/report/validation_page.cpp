#include "studies/report/validation_page.h"

#include <nlohmann/json.hpp>

#include "studies/report/page.h"

namespace tandem::studies {

std::string validation_page(const std::string& title, const Validation& validation, const std::string& command) {
  nlohmann::ordered_json report = report_head("validation", title, command);
  report.update(to_json_object(validation));
  for (nlohmann::ordered_json& row : report["rows"])
    for (const char* detail : {"time_s", "kinds", "scenario"}) row.erase(detail);  // which the page does not show
  return report_page(report);
}

}  // namespace tandem::studies
