#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/progress.h"
#include "cli/text/campaign_text.h"
#include "cli/text/step_text.h"
#include "studies/campaign/forecast.h"
#include "studies/campaign/slow_node.h"
#include "studies/runner/step_runner.h"
#include "studies/step/simulated_step.h"

namespace tandem::cli {
namespace {

struct CampaignCommand final : Command {
  ResultOptions options;
  double fold_tolerance = 0;
  int jobs = 0;  ///< 0 for the default
  bool allow_oom = false;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* CampaignCommand::add_to(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("campaign", "play weeks of training: failures, checkpoints, goodput, days and GPU-hours");
  options.add_to(*command);
  add_max_memory_option(*command);
  add_profile_option(*command, options);
  add_fold_tolerance_option(*command, fold_tolerance);
  add_jobs_option(*command, jobs, "campaigns");
  command->add_flag("--allow-oom", allow_oom, "go on when the scenario does not fit in memory");
  return command;
}

ExitCode CampaignCommand::run() const {
  const Campaign campaign = load_campaign(options.scenario, options.overrides);
  tell_warnings(campaign.scenario.warnings);
  Output json(options.json);

  ProgressBar bar;
  const SimulationOptions closely{.fold_tolerance = fold_tolerance, .progress = &bar, .fold_time = true, .fold_mirrors = true};
  CampaignSteps steps{.healthy = simulate_step(campaign.scenario, true, closely).result, .with_slow_node = {}};
  if (!steps.healthy.fits() && !allow_oom) {
    bar.take_away();
    return complain("tandem", out_of_memory_sentence(options.scenario, steps.healthy), ExitCode::does_not_fit);
  }
  steps.with_slow_node = step_with_slow_node(campaign, steps.healthy, closely);
  const std::size_t at_once = processes_at_once(jobs);
  const CampaignForecast told = forecast(campaign, steps, at_once, &bar);
  bar.take_away();
  if (json) json.write(to_json(told));
  if (!json.is_standard_output()) std::cout << to_text(told, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_campaign() { return std::make_unique<CampaignCommand>(); }

}  // namespace tandem::cli
