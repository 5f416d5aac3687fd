#include "studies/crosscheck/crosscheck.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/page.h"
#include "cli/terminal/progress.h"
#include "cli/text/crosscheck_text.h"
#include "runtime/base/input_error.h"
#include "studies/crosscheck/comparison_json.h"
#include "studies/report/step_report.h"

namespace tandem::cli {
namespace {

struct CrosscheckCommand final : Command {
  StepOptions options;
  BackendOptions backend;
  std::string measured;  ///< a timeline; empty: the step is executed on `backend`
  Collectives collectives = Collectives::fluid;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs) const;
};

CLI::App* CrosscheckCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crosscheck", "simulate and execute the same DAG, task by task");
  options.add_to(*command);
  backend.backend.clear();
  CLI::Option* const here = backend.add_to(*command)->required(false);
  command->add_option("--measured", measured, "do not execute: take the timeline of this scenario that tandem-run --out wrote")
      ->check(not_empty)
      ->excludes(here);
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode CrosscheckCommand::run() const {
  if (backend.backend.empty() && measured.empty())
    throw InputError({options.scenario, 0, 0},
                     "is held against nothing; expected --backend host or cuda, or --measured F as well");
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, command_line, [&] { return run(scenario, outputs); });
}

ExitCode CrosscheckCommand::run(const Scenario& scenario, Outputs& outputs) const {
  ProgressBar bar;
  const Crosscheck check(scenario, options.scenario,
                         {.backend = backend, .measured = measured, .collectives = collectives, .progress = &bar});
  bar.take_away();

  const Dag& dag = check.dag();
  const StepResult& result = check.result();
  outputs.write(to_json(result, check.comparison()),
                {{"simulated", &dag, &check.simulated(), true}, {"measured", &dag, &check.measured()}});
  outputs.write_report([&] {
    return crosscheck_page(scenario, dag, check.simulated(), check.measured(), result, check.comparison(), command_line);
  });
  const auto [out, screen] = outputs.text();
  out << Page(screen)
             .line(fmt::format("{}: {} ranks, {} tasks, simulated and executed ({})", scenario.name, dag.ranks.size(),
                               dag.tasks.size(), check.executed_on()),
                   Style::strong)
             .empty_line()
             .text()
      << to_text(check.comparison(), screen);
  if (const auto kinds = check.verified_collectives()) out << exact_collectives_sentence(*kinds);
  return check.comparison().same_order() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

std::unique_ptr<Command> make_crosscheck() { return std::make_unique<CrosscheckCommand>(); }

}  // namespace tandem::cli
