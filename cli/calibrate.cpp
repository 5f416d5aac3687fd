#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "cli/text/calibrate_text.h"
#include "runtime/host/collective_timer.h"
#include "scenarios/reading/load.h"
#include "studies/calibrate/bench.h"
#include "studies/calibrate/launched_collectives.h"
#include "studies/calibrate/measure.h"
#include "studies/calibrate/profile_report.h"
#include "studies/calibrate/shapes_file.h"
#include "traces/profile_file.h"

namespace tandem::cli {
namespace {

constexpr double part_of_collectives = 0.1, part_of_planning = 0.1;

/// What is measured with, and what collectives took among its ranks.
struct Measured {
  CalibrationBench bench;
  std::vector<MeasuredCollective> collectives;
};

Measured measured_on_host(Seconds budget) {
  std::vector<MeasuredCollective> collectives = collectives_worth_measuring_on_host();
  ProgressBar bar;
  std::size_t begun = 0;
  time_on_host(collectives, budget, [&](const MeasuredCollective&) {
    bar.show("collectives", static_cast<double>(begun++) / static_cast<double>(collectives.size()), std::nullopt);
  });
  return {open_host_bench(), std::move(collectives)};
}

/// Nothing on all ranks but 0, which goes on alone: the others need not wait until it has measured the kernels.
std::optional<Measured> measured_with_others(const Launch& launch, Seconds budget, const std::function<void()>& begin) {
  ProgressBar bar;
  const auto progress = [&](const std::string& what, double share) { bar.show(what, share, std::nullopt); };
  std::optional<LaunchedCollectives> launched =
      measure_with_others(launch, {.budget = budget, .begin = begin, .progress = progress});
  if (!launched) return std::nullopt;
  Measured measured{open_gpu_bench(std::move(launched->gpu)), std::move(launched->collectives)};
  measured.bench.origin.device = launched->device;
  return measured;
}

/// The profile, and the readable one beside it.
class ProfileFiles {
 public:
  explicit ProfileFiles(const std::string& out) : profile_(out), readable_(out + ".yaml") {}

  void write(const Profile& profile) {
    profile_.write(to_bytes(profile));
    readable_.write(to_yaml(profile));
    readable_.commit();
    profile_.commit();
  }

 private:
  OutputFile profile_, readable_;
};

Calibration measure_kernels(const CalibrationBench& bench, const std::vector<Scenario>& scenarios,
                            const std::vector<TimedKernel>& shapes, Seconds budget) {
  const auto began = std::chrono::steady_clock::now();
  KernelPlan plan(bench.memory);
  add_probes(bench.precisions, plan);
  const std::size_t probes = plan.kernels().size();
  for (const Scenario& scenario : scenarios) add_scenario(scenario, plan);
  for (const TimedKernel& kernel : shapes) plan.add(kernel);
  const std::size_t requested = plan.kernels().size();
  add_grids(bench.precisions, plan);
  add_memory_bound(bench.precisions, plan);
  add_presets(bench.precisions, bench.sequence, part_of_planning * budget, plan);

  const auto part = [&](std::size_t first, std::size_t last) {
    return std::vector<TimedKernel>(plan.kernels().begin() + static_cast<std::ptrdiff_t>(first),
                                    plan.kernels().begin() + static_cast<std::ptrdiff_t>(last));
  };
  const Seconds planning = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  ProgressBar bar;
  const auto told = [&bar](const std::string& what, double share, Seconds left) { bar.show(what, share, left); };
  return measure(bench, {part(0, probes), part(probes, requested), part(requested, plan.kernels().size())},
                 std::max(budget - planning, budget / 2), told);
}

}  // namespace

CLI::App* CalibrateCommand::add_to(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("calibrate", "measure kernels and collectives on this machine, for the simulator to use");
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
  const Launch launch = launch_from(process_environment());
  if (launch.size > 1 && backend == "host")
    throw std::runtime_error("the host backend runs all ranks in one process, and " + std::to_string(launch.size) +
                             " were launched; expected one, or --backend cuda");
  // Wrong input is every process' own, and found before they meet.
  std::vector<Scenario> to_measure;
  for (const std::string& scenario : scenarios) to_measure.push_back(load_scenario(scenario, {}));
  const std::vector<TimedKernel> listed = shapes.empty() ? std::vector<TimedKernel>() : read_shapes_file(shapes);

  std::optional<ProfileFiles> files;
  const auto open_files = [&] { files.emplace(out); };
  const Seconds of_collectives = part_of_collectives * budget;
  std::optional<Measured> measured;
  if (launch.size > 1) {
    measured = measured_with_others(launch, of_collectives, open_files);
    if (!measured) return ExitCode::done;
  } else {
    open_files();
    measured = backend == "host" ? measured_on_host(of_collectives) : Measured{open_gpu_bench(open_gpu()), {}};
  }
  const bool has_collectives = !measured->collectives.empty();
  Calibration calibration =
      measure_kernels(measured->bench, to_measure, listed, has_collectives ? budget - of_collectives : budget);
  if (calibration.profile.kernels.empty()) throw std::runtime_error("nothing could be measured; " + calibration.first_failure);
  add_collectives(measured->collectives, calibration);

  files->write(calibration.profile);
  std::cout << to_text(calibration) << out << " and " << out << ".yaml written; use it with cluster.profile\n";
  return ExitCode::done;
}

}  // namespace tandem::cli
