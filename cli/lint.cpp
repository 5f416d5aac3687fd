#include "studies/lint/lint.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/lint_text.h"
#include "studies/runner/step_runner.h"

namespace tandem::cli {
namespace {

ExitCode exit_code(const LintResult& report) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == "refused") return ExitCode::wrong_input;
    if (finding.rule == "does-not-fit") return ExitCode::does_not_fit;
  }
  return report.has(Severity::error) || report.has(Severity::warning) ? ExitCode::failed : ExitCode::done;
}

struct LintCommand final : Command {
  ResultOptions options;
  int jobs = 0;           ///< 0 for the default
  bool no_costs = false;  ///< nothing is simulated
  std::string markdown;   ///< a path, "-" for standard output, empty for none

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* LintCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("lint", "say what will hurt, and by how much");
  options.add_to(*command);
  add_max_memory_option(*command);
  add_jobs_option(*command, jobs, "simulations");
  command->add_flag("--no-costs", no_costs, "simulate nothing, which leaves out memory and what fixes would gain");
  add_markdown_option(*command, markdown, "the findings");
  return command;
}

ExitCode LintCommand::run() const {
  const std::size_t at_once = processes_at_once(jobs);
  Output json(options.json), markdown_output(markdown);
  PointsProgress line;
  const auto told = [&line](const RunProgress& progress) { line.show(progress); };
  const LintResult report = lint(options.scenario, options.overrides, {.jobs = at_once, .with_costs = !no_costs, .told = told});
  if (json) json.write(to_json(report));
  if (markdown_output) markdown_output.write(to_text(report, {.markdown = true}));
  if (!json.is_standard_output() && !markdown_output.is_standard_output()) std::cout << to_text(report, screen_on(STDOUT_FILENO));
  return exit_code(report);
}

}  // namespace

std::unique_ptr<Command> make_lint() { return std::make_unique<LintCommand>(); }

}  // namespace tandem::cli
