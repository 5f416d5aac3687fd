#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "cli/text/campaign_text.h"
#include "studies/campaign/forecast.h"
#include "studies/campaign/slow_node.h"
#include "studies/runner/worker_pool.h"
#include "studies/step/simulated_step.h"

namespace tandem::cli {

CLI::App* CampaignCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("campaign", "weeks of training: failures, checkpoints, goodput, days and GPU-hours");
  options.add_to(*command);
  add_profile_option(*command, options);
  command
      ->add_option("--fold-tolerance", fold_tolerance,
                   "under ECMP, merge links whose loads differ by a factor of up to 1 + this; 0 folds exactly")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--jobs", jobs, "campaigns at once (default: this machine's hardware threads)")->check(CLI::Range(1, 4096));
  command->add_flag("--allow-oom", allow_oom, "go on when the scenario does not fit in memory");
  return command;
}

ExitCode CampaignCommand::run() const {
  const Campaign campaign = load_campaign(options.scenario, options.overrides);
  for (const std::string& warning : campaign.scenario.warnings) std::cerr << "tandem: warning: " << warning << '\n';
  std::unique_ptr<OutputFile> file;
  if (!options.json.empty() && options.json != "-") file = std::make_unique<OutputFile>(options.json);

  ProgressBar bar;
  const SimulationOptions closely{.fold_tolerance = fold_tolerance, .progress = &bar};
  CampaignSteps steps{.healthy = simulate_step(campaign.scenario, true, closely).result, .with_slow_node = {}};
  if (!steps.healthy.fits() && !allow_oom) {
    bar.take_away();
    std::cerr << "tandem: " << out_of_memory_sentence(options.scenario, steps.healthy) << '\n';
    return ExitCode::does_not_fit;
  }
  if (const SlowNodeSpec& slow = campaign.spec.slow_node; slow.one_in > 0) {
    const Scenario with_one = with_slow_node(campaign.scenario, steps.healthy, slow.factor);
    steps.with_slow_node = simulate_step(with_one, true, closely).result.step_time;
  }
  const std::size_t at_once = processes_at_once(jobs);
  const CampaignForecast told = forecast(campaign, steps, at_once, &bar);
  bar.take_away();
  if (file) {
    file->write(to_json(told));
    file->commit();
  }
  std::cout << (options.json == "-" ? to_json(told) : to_text(told, screen_on(STDOUT_FILENO)));
  return ExitCode::done;
}

}  // namespace tandem::cli
