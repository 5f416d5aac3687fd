#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/crosscheck/comparison.h"
#include "cli/executed_step.h"
#include "cli/report/step_report.h"
#include "cli/terminal_page.h"
#include "sim/simulate.h"

namespace tandem {
namespace {

/// By rank; nothing where the backend places no buffers ahead.
std::vector<Bytes> peaks_of(const ExecutedStep& step) {
  std::vector<Bytes> peaks;
  for (RankIndex rank = 0; rank < step.dag().ranks.size(); ++rank) {
    const std::optional<Bytes> arena = step.site().arena(rank);
    if (!arena) return {};
    peaks.push_back(*arena);
  }
  return peaks;
}

}  // namespace

CLI::App* CrosscheckCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crosscheck", "simulate and execute the same DAG, task by task");
  options.add_to(*command);
  backend.add_to(*command);
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode CrosscheckCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world());
  return reporting_failure(scenario, outputs, [&] { return run(scenario, outputs); });
}

ExitCode CrosscheckCommand::run(const Scenario& scenario, Outputs& outputs) const {
  ExecutedStep step(scenario, options.scenario, backend, period_of(scenario), collectives == Collectives::steps);
  ProgressBar bar;
  const SimulationRun simulated = simulate(step.dag(), collectives, {}, shown_in(&bar, "simulating"));
  const std::size_t kinds = step.verify_collectives();
  step.execute(&bar);
  bar.take_away();

  StepResult result = step.result();
  result.warnings = scenario.warnings;
  result.run.collectives = name_of(collectives);
  result.comparison = compare(step.dag(), simulated.timeline, step.timeline(), peaks_of(step));
  outputs.write(result, {{"simulated", &step.dag(), &simulated.timeline, true}, {"measured", &step.dag(), &step.timeline()}});
  outputs.write_report([&] { return crosscheck_page(scenario, step.dag(), simulated.timeline, step.timeline(), result); });
  const bool json_goes_out = options.json == "-";
  std::ostream& out = json_goes_out ? std::cerr : std::cout;
  const Screen screen = screen_on(json_goes_out ? STDERR_FILENO : STDOUT_FILENO);
  out << Page(screen)
             .line(fmt::format("{}: {} ranks, {} tasks, simulated and executed ({})", scenario.name, step.dag().ranks.size(),
                               step.dag().tasks.size(), step.site().description()),
                   Style::strong)
             .empty_line()
             .text()
      << to_text(*result.comparison, screen) << fmt::format("{} kinds of collectives exact on crafted data\n", kinds);
  return result.comparison->same_order() ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem
