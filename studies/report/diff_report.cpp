#include "studies/report/diff_report.h"

#include <nlohmann/json.hpp>

#include "studies/report/page.h"

namespace tandem::studies {

std::string diff_page(const ResultDifference& difference, const std::string& command) {
  nlohmann::ordered_json report = report_head("diff", difference.a.name + " and " + difference.b.name, command);
  report.update(to_json_object(difference));
  return report_page(report);
}

}  // namespace tandem::studies
