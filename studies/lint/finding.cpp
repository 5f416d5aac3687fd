#include "studies/lint/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tandem::studies {

const char* name_of(Severity severity) {
  constexpr const char* names[] = {"error", "warning", "advice"};
  return names[static_cast<std::size_t>(severity)];
}

std::string fix_text(const Finding& finding) { return set_options(finding.fix); }

namespace {

nlohmann::ordered_json fixed_json(const FixedStep& step) {
  return {{"step_time_s", step.step_time}, {"peak_bytes", step.peak}, {"fits", step.fits}};
}

}  // namespace

bool LintResult::has(Severity severity) const {
  return std::ranges::find(findings, severity, &Finding::severity) != findings.end();
}

std::string to_json(const LintResult& result) {
  using nlohmann::ordered_json;
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : result.findings) {
    ordered_json one{{"severity", name_of(finding.severity)},
                     {"rule", finding.rule},
                     {"place", finding.place.text()},
                     {"sentence", finding.sentence},
                     {"cost_s", nullptr},
                     {"fix", finding.fix},
                     {"fixed", nullptr}};
    if (finding.cost) one["cost_s"] = *finding.cost;
    if (finding.fixed) one["fixed"] = fixed_json(*finding.fixed);
    if (finding.relief) one["relief"] = to_json_object(*finding.relief);
    findings.push_back(std::move(one));
  }
  ordered_json step = nullptr;
  if (result.step) {
    step = {{"step_time_s", result.step->step_time},
            {"peak_bytes", result.step->peak_memory()},
            {"gpu_bytes", result.step->gpu_memory},
            {"fits", result.step->fits()}};
  }
  const ordered_json all{{"scenario", result.scenario}, {"step", step}, {"findings", findings}};
  return all.dump(1) + "\n";
}

}  // namespace tandem::studies
