#include "cli/text/lint_text.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/page.h"
#include "cli/text/relief_text.h"
#include "runtime/base/quantities.h"

namespace tandem::cli {
namespace {

std::string outcome_of_fix(const Finding& finding) {
  if (!finding.fixed) return "";
  if (!finding.fixed->fits) return ": would not fit";
  return finding.cost.value_or(0) > 0 ? ": " + duration(finding.fixed->step_time) + " a step"
                                      : ": no faster, " + duration(finding.fixed->step_time);
}

}  // namespace

std::string to_text(const LintResult& report, const Screen& screen) {
  Page page(screen);
  if (report.step)
    page.line(fmt::format("{}: a step takes {}", report.scenario, duration(report.step->step_time)), Style::strong);
  if (report.findings.empty()) page.line("nothing found");
  for (const Finding& finding : report.findings) {
    const std::string cost = finding.cost && *finding.cost > 0 ? fmt::format(", costs {:.1f} ms", 1e3 * *finding.cost) : "";
    page.empty_line().line(fmt::format("{} ({}{})", name_of(finding.severity), finding.rule, cost), Style::strong);
    page.line(placed(finding.place, finding.sentence), Style::plain, 2);
    if (finding.relief) add_relief(page, *finding.relief);
    const bool told = finding.relief && finding.relief->plan;
    if (!told && !finding.fix.empty()) page.line(fix_text(finding) + outcome_of_fix(finding), Style::plain, 2);
  }
  return page.text();
}

}  // namespace tandem::cli
