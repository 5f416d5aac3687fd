#include "studies/place/place.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/terminal/points_progress.h"
#include "cli/text/place_text.h"
#include "runtime/base/input_error.h"
#include "studies/runner/step_runner.h"

namespace tandem::cli {
namespace {

struct PlaceCommand final : Command {
  ResultOptions options;
  std::string nodes;  ///< a list or a file; empty for all
  std::string out = "placement.yaml";
  std::string hostfile;  ///< empty for none
  std::string study;     ///< empty for the default
  std::uint64_t seed = 1;
  std::int64_t moves = 20'000;
  int jobs = 0;  ///< 0 for the default

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* PlaceCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("place", "assign ranks to free nodes so that the heaviest communicators stay low");
  options.add_to(*command);
  add_max_memory_option(*command);
  command
      ->add_option("--nodes", nodes,
                   "the nodes that are free: 0-3,8,12-15, hosts such as tux[0-3,12], or a file of such lists (default: all)")
      ->check([](const std::string& list) { return list.empty() ? "is empty, expected nodes such as 0-3,8" : ""; });
  command->add_option("--out", out, "the placement to write (default: placement.yaml)")->check(not_empty);
  command->add_option("--hostfile", hostfile, "the hosts in the order of the ranks, for mpirun, DeepSpeed, torchrun")
      ->check(not_empty);
  command->add_option("--seed", seed, "seed of the search (default: 1)")->check([](const std::string& text) {
    return text.starts_with('-') ? "is negative, expected a whole number from 0" : "";
  });
  command->add_option("--moves", moves, "moves that a search tries from each of its starts (default: 20000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command->add_option("--study", study, "the SQLite file that keeps searches and simulations (default: OUT with .sqlite)")
      ->check(not_empty);
  add_jobs_option(*command, jobs, "searches and simulations");
  return command;
}

ExitCode PlaceCommand::run() const {
  const PlacedJob job(options.scenario, options.overrides, nodes);
  tell_warnings(job.packed_scenario().warnings);
  tell_warnings(job.warnings());
  if (!hostfile.empty() && job.hosts(job.packed()).empty())
    throw InputError({"--hostfile", 0, 0}, fmt::format("needs the names of {} hosts, expected them in cluster.hosts of {}",
                                                       job.nodes() * job.hosts_per_node(), options.scenario));
  Output hosts(hostfile);
  Output json(options.json);
  OutputFile file(out);
  const std::string database = study.empty() ? std::filesystem::path(out).replace_extension(".sqlite").string() : study;
  const std::size_t at_once = processes_at_once(jobs);
  PointsProgress line;
  const PlacementResult result =
      place(job, options.scenario, {seed, moves}, database, at_once, [&](const RunProgress& progress) { line.show(progress); });
  if (!result.search.packed().step()->fits())
    std::cerr << "tandem: warning: " << options.scenario << ": the step does not fit in memory, wherever its ranks are\n";
  file.write(placement_file_text(job, result.search));
  file.commit();
  if (hosts) hosts.write(hostfile_text(result));
  if (json) json.write(to_json(result));
  if (!json.is_standard_output()) std::cout << to_text(result, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_place() { return std::make_unique<PlaceCommand>(); }

}  // namespace tandem::cli
