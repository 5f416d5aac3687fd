#include "studies/calibrate/calibrate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/shared_options.h"
#include "cli/terminal/points_progress.h"
#include "cli/terminal/progress.h"
#include "cli/text/calibrate_text.h"
#include "cli/text/site_text.h"
#include "runtime/launch/secret.h"
#include "scenarios/reading/load.h"
#include "studies/calibrate/profile_files.h"
#include "studies/calibrate/shapes_file.h"
#include "studies/calibrate/site_profile.h"
#include "studies/runner/step_runner.h"

namespace tandem::cli {
namespace {

struct CalibrateCommand final : Command {
  std::string backend;
  std::string out;
  std::vector<std::string> scenarios;
  std::string shapes;  ///< a file; empty for none
  std::string runs;    ///< a table; empty for none
  Seconds budget = 180;
  bool all_grids = false;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode measure() const;
  ExitCode learn() const;
};

CLI::App* CalibrateCommand::add_to(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate", "measure kernels and collectives on this machine, for the simulator to use");
  CLI::Option* measured_on = add_backend_option(*command, backend)->required(false);
  command->add_option("--out", out, "the profile to write; a readable one goes beside it, OUT.yaml")
      ->required()
      ->check(not_empty);
  command->add_option("--scenario", scenarios, "measure every kernel of this scenario; may be given several times")
      ->allow_extra_args(false)
      ->take_all()
      ->check(not_empty);
  command->add_option("--shapes", shapes, "measure the kernels that this file lists")->check(not_empty);
  command->add_option("--budget", budget, "seconds to spend in all")->check(CLI::Range(0.1, 1e6));
  command->add_flag("--all-grids", all_grids,
                    "with cuda: measure matrix products and attentions of regular sizes in fp32, too, not in bf16 alone");
  CLI::Option* learnt_from =
      command->add_option("--runs", runs, "a table of measured training runs, as of `tandem validate`: learn from them")
          ->check(not_empty)
          ->excludes(measured_on)
          ->excludes("--scenario")
          ->excludes("--shapes")
          ->excludes("--budget")
          ->excludes("--all-grids");
  command->parse_complete_callback([measured_on, learnt_from] {
    if (measured_on->empty() && learnt_from->empty()) throw CLI::RequiredError("--backend or --runs");
  });
  return command;
}

ExitCode CalibrateCommand::run() const { return runs.empty() ? measure() : learn(); }

ExitCode CalibrateCommand::learn() const {
  const RunsFile file = load_runs(runs);
  ProfileFiles files(out);
  PointsProgress line;
  const SiteFit fit = fit_site(file.rows, processes_at_once(0), [&line](const RunProgress& progress) { line.show(progress); });
  files.write(profile_of(fit.site));
  std::cout << to_text(fit, screen_on(STDOUT_FILENO)) << out << " and " << out << ".yaml written; use it with cluster.profile\n";
  return ExitCode::done;
}

ExitCode CalibrateCommand::measure() const {
  const Launch launch = launch_of_this_process();
  refuse_launch_on_host(launch, backend);
  // Wrong input is every process' own, and found before they meet.
  CalibrationRequest request{.backend = backend, .scenarios = {}, .shapes = {}, .budget = budget, .all_grids = all_grids};
  for (const std::string& scenario : scenarios) request.scenarios.push_back(load_scenario(scenario, {}));
  if (!shapes.empty()) request.shapes = read_shapes_file(shapes);

  std::optional<ProfileFiles> files;
  ProgressBar bar;
  request.begin = [&] { files.emplace(out); };
  request.told = [&](const std::string& what, double share, std::optional<Seconds> left) { bar.show(what, share, left); };
  const std::optional<Calibration> calibration = calibrate(launch, request);
  bar.take_away();
  if (!calibration) return ExitCode::done;  // another process of the launch has the result

  files->write(calibration->profile);
  std::cout << to_text(*calibration) << out << " and " << out << ".yaml written; use it with cluster.profile\n";
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_calibrate() { return std::make_unique<CalibrateCommand>(); }

}  // namespace tandem::cli
