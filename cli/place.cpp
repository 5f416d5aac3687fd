#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/place_text.h"
#include "studies/place/placement_report.h"
#include "studies/runner/worker_pool.h"
#include "topology/fabric.h"

namespace tandem::cli {

CLI::App* PlaceCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("place", "assign ranks to free nodes so that the heaviest communicators stay low");
  const auto not_empty = [](const std::string& text) { return text.empty() ? "is empty, expected something" : ""; };
  options.add_to(*command);
  command->add_option("--nodes", nodes, "those that are free: 0-3,8,12-15, or a file of such lists (default: all)")
      ->check(not_empty);
  command->add_option("--out", out, "where the placement goes (default: placement.yaml)")->check(not_empty);
  command->add_option("--seed", seed, "of the search (default: 1)");
  command->add_option("--moves", moves, "that a search tries from each of its starts (default: 20000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command->add_option("--study", study, "the SQLite file that keeps searches and simulations (default: OUT, .sqlite)")
      ->check(not_empty);
  command->add_option("--jobs", jobs, "searches and simulations at once (default: this machine's hardware threads)")
      ->check(CLI::Range(1, 4096));
  return command;
}

ExitCode PlaceCommand::run() const {
  const PlacedJob job(options.scenario, options.overrides, nodes);
  for (const std::string& warning : job.packed_scenario().warnings) std::cerr << "tandem: warning: " << warning << '\n';
  std::unique_ptr<OutputFile> json;
  if (!options.json.empty() && options.json != "-") json = std::make_unique<OutputFile>(options.json);
  OutputFile file(out);
  const std::string database = study.empty() ? std::filesystem::path(out).replace_extension(".sqlite").string() : study;
  const std::size_t at_once = processes_at_once(jobs);
  PointsProgress line;
  const PlacementReport report = [&] {
    try {
      const StepTraffic traffic = traffic_of_step(job.packed_scenario());
      return report_placement(job, traffic,
                              search_placement(job, traffic, {seed, moves}, database, at_once,
                                               [&](const RunProgress& progress) { line.show(progress); }));
    } catch (const TopologyError& error) {
      throw InputError({options.scenario, 0, 0}, error.what());
    }
  }();
  if (report.search.packed().judgement.status == PointStatus::oom)
    std::cerr << "tandem: warning: " << options.scenario << ": the step does not fit in memory, wherever its ranks are\n";
  file.write(placement_file_text(job, report.search));
  file.commit();
  if (json) {
    json->write(to_json(report));
    json->commit();
  }
  std::cout << (options.json == "-" ? to_json(report) : to_text(report, screen_on(STDOUT_FILENO)));
  return ExitCode::done;
}

}  // namespace tandem::cli
