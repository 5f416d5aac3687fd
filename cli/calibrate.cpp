#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>

#include "cli/calibrate/bench.h"
#include "cli/calibrate/measure.h"
#include "cli/calibrate/profile_report.h"
#include "cli/calibrate/shapes_file.h"
#include "cli/command.h"
#include "scenarios/load.h"
#include "traces/profile_file.h"

namespace tandem {

CLI::App* CalibrateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "measure kernels on this machine, for the simulator to use");
  add_backend_option(*command, backend);
  const auto not_empty = [](const std::string& path) { return path.empty() ? "is empty, expected a path" : ""; };
  command->add_option("--out", out, "the profile to write; a readable one goes beside it, OUT.yaml")
      ->required()
      ->check(not_empty);
  command->add_option("--scenario", scenarios, "measure every kernel of this scenario; may be given several times")
      ->allow_extra_args(false)
      ->take_all()
      ->check(not_empty);
  command->add_option("--shapes", shapes, "measure the kernels that this file lists")->check(not_empty);
  command->add_option("--budget", budget, "seconds to spend in all")->check(CLI::Range(0.1, 1e6));
  return command;
}

ExitCode CalibrateCommand::run() const {
  const auto began = std::chrono::steady_clock::now();
  const CalibrationBench bench = open_bench(backend);
  OutputFile profile_file(out), readable_file(out + ".yaml");

  KernelPlan plan(bench.memory);
  add_probes(bench.precisions, plan);
  const std::size_t probes = plan.kernels().size();
  for (const std::string& scenario : scenarios) add_scenario(load_scenario(scenario, {}), plan);
  if (!shapes.empty()) add_shapes_file(shapes, plan);
  const std::size_t requested = plan.kernels().size();
  add_grids(bench.precisions, plan);
  add_memory_bound(bench.precisions, plan);
  constexpr double for_planning = 0.1;
  add_presets(bench.precisions, bench.sequence, for_planning * budget, plan);

  const auto part = [&](std::size_t first, std::size_t last) {
    return std::vector<TimedKernel>(plan.kernels().begin() + static_cast<std::ptrdiff_t>(first),
                                    plan.kernels().begin() + static_cast<std::ptrdiff_t>(last));
  };
  const Seconds planning = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const Calibration calibration =
      measure(bench, {part(0, probes), part(probes, requested), part(requested, plan.kernels().size())},
              std::max(budget - planning, budget / 2));
  if (calibration.profile.kernels.empty()) throw std::runtime_error("nothing could be measured; " + calibration.first_failure);

  profile_file.write(to_bytes(calibration.profile));
  readable_file.write(to_yaml(calibration.profile));
  readable_file.commit();
  profile_file.commit();
  std::cout << to_text(calibration) << out << " and " << out << ".yaml written; use it with cluster.profile\n";
  return ExitCode::done;
}

}  // namespace tandem
