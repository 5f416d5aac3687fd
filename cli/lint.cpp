#include "studies/lint/lint.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/terminal/page.h"
#include "cli/terminal/points_progress.h"
#include "runtime/base/quantities.h"
#include "studies/runner/worker_pool.h"
#include "traces/output_file.h"

namespace tandem::cli {
namespace {

std::string outcome_of_fix(const Finding& finding) {
  if (!finding.fixed) return "";
  if (!finding.fixed->fits) return ": would not fit";
  return finding.cost.value_or(0) > 0 ? ": " + duration(finding.fixed->step_time) + " a step"
                                      : ": no faster, " + duration(finding.fixed->step_time);
}

std::string to_text(const LintReport& report, const Screen& screen) {
  Page page(screen);
  if (report.step)
    page.line(fmt::format("{}: a step takes {}", report.scenario, duration(report.step->step_time)), Style::strong);
  if (report.findings.empty()) page.line("nothing found");
  for (const Finding& finding : report.findings) {
    const std::string cost = finding.cost && *finding.cost > 0 ? fmt::format(", costs {:.1f} ms", 1e3 * *finding.cost) : "";
    page.empty_line().line(fmt::format("{} ({}{})", name_of(finding.severity), finding.rule, cost), Style::strong);
    page.line(finding.place.text() + ": " + finding.sentence, Style::plain, 2);
    if (!finding.fix.empty()) page.line(fix_text(finding) + outcome_of_fix(finding), Style::plain, 2);
  }
  return page.text();
}

ExitCode exit_code(const LintReport& report) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == "refused") return ExitCode::wrong_input;
    if (finding.rule == "does-not-fit") return ExitCode::does_not_fit;
  }
  return report.has(Severity::error) || report.has(Severity::warning) ? ExitCode::failed : ExitCode::done;
}

}  // namespace

CLI::App* LintCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("lint", "what will hurt, and by how much");
  options.add_to(*command);
  command->add_option("--jobs", jobs, "simulations at once (default: this machine's hardware threads)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--no-costs", no_costs, "simulate nothing: neither memory nor what fixes gain is told");
  return command;
}

ExitCode LintCommand::run() const {
  const std::size_t at_once = processes_at_once(jobs);
  std::unique_ptr<OutputFile> file;
  if (!options.json.empty() && options.json != "-") file = std::make_unique<OutputFile>(options.json);
  PointsProgress line;
  const auto told = [&line](const RunProgress& progress) { line.show(progress); };
  const LintReport report = lint(options.scenario, options.overrides, {.jobs = at_once, .with_costs = !no_costs, .told = told});
  if (file) {
    file->write(to_json(report));
    file->commit();
  }
  std::cout << (options.json == "-" ? to_json(report) : to_text(report, screen_on(STDOUT_FILENO)));
  return exit_code(report);
}

}  // namespace tandem::cli
