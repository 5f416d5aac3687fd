#include "studies/crosscheck/crosscheck.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/page.h"
#include "cli/terminal/progress.h"
#include "cli/text/crosscheck_text.h"
#include "cli/text/kineto_text.h"
#include "runtime/base/input_error.h"
#include "runtime/host/loss.h"
#include "studies/crosscheck/comparison_json.h"
#include "studies/kineto/against_simulation.h"
#include "studies/report/step_report.h"

namespace tandem::cli {
namespace {

struct CrosscheckCommand final : Command {
  StepOptions options;
  BackendOptions backend;
  std::string measured;              ///< a timeline, or traces; empty: the step is executed on `backend`
  std::optional<std::int64_t> step;  ///< of traces
  Collectives collectives = Collectives::fluid;
  std::optional<double> most_error, most_kind_error;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs) const;
  ExitCode run_against_traces(const Scenario& scenario) const;
};

CLI::App* CrosscheckCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crosscheck", "simulate and execute the same DAG, task by task");
  options.add_to(*command);
  add_max_memory_option(*command, false);
  backend.backend.clear();
  CLI::Option* const here = backend.add_to(*command)->required(false);
  command
      ->add_option("--measured", measured,
                   "do not execute: take the timeline of this scenario that tandem-run --out wrote, or torch.profiler's traces "
                   "of such a run, a file or a folder")
      ->check(not_empty)
      ->excludes(here);
  command->add_option("--step", step, "of traces: the N of a ProfilerStep#N (default: a typical one of each)")
      ->check(CLI::NonNegativeNumber);
  add_profile_option(*command, options);
  command
      ->add_option("--max-error", most_error,
                   "fail where the simulated step time is further from the measured one, as a fraction of that: 0.1")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--max-kind-error", most_kind_error,
                   "fail where a kind of task of at least 1 % of the time takes, simulated, further from what was measured: 0.1")
      ->check(CLI::PositiveNumber);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode CrosscheckCommand::run() const {
  if (backend.backend.empty() && measured.empty())
    throw InputError({options.scenario, 0, 0},
                     "is held against nothing; expected --backend host or cuda, or --measured F as well");
  const Scenario scenario = load_with_warnings(options);
  if (are_kineto_traces(measured)) return run_against_traces(scenario);
  if (step) throw InputError({"--step", 0, 0}, "is for traces of torch.profiler; expected none");
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, command_line, [&] { return run(scenario, outputs); });
}

/// Of a run whose kernels are not the tasks of the DAG: there is no timeline of them, and no report.
ExitCode CrosscheckCommand::run_against_traces(const Scenario& scenario) const {
  for (const auto& [option, value] : {std::pair("--trace", options.trace), {"--report", options.report}})
    if (!value.empty())
      throw InputError({option, 0, 0},
                       "shows two timelines of the same tasks, and a framework's kernels are others; expected --json");
  if (collectives != Collectives::fluid)
    throw InputError({"--collectives steps", 0, 0}, "is for --backend and timelines of tandem-run; expected --collectives fluid");
  Output json(options.json);
  const AgainstSimulation comparison = against_simulation(scenario, read_kineto_traces(measured), step);
  if (json) json.write(to_json_object(comparison).dump(1) + "\n");
  const bool shares_screen = json.is_standard_output();
  (shares_screen ? std::cerr : std::cout) << to_text(comparison, screen_on(shares_screen ? STDERR_FILENO : STDOUT_FILENO));
  return ExitCode::done;
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
  if (const auto loss = check.loss()) {
    out << loss_sentence(*loss);
    refuse_broken_loss(*loss);
  }
  if (most_error) refuse_larger_error(check.comparison(), *most_error);
  if (most_kind_error) refuse_larger_kind_errors(check.comparison(), *most_kind_error);
  return check.comparison().same_order() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

std::unique_ptr<Command> make_crosscheck() { return std::make_unique<CrosscheckCommand>(); }

}  // namespace tandem::cli
