#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/text/topology_text.h"
#include "studies/topology/topology_summary.h"

namespace tandem::cli {
namespace {

struct TopologyCommand final : Command {
  ResultOptions options;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* TopologyCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("topology", "show the cluster, its links, and where each communicator lies on them");
  options.add_to(*command);
  return command;
}

ExitCode TopologyCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Output json(options.json);
  const TopologySummary summary = summarize_topology(scenario);
  if (json) json.write(to_json(summary));
  if (!json.is_standard_output()) std::cout << to_text(summary, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_topology() { return std::make_unique<TopologyCommand>(); }

}  // namespace tandem::cli
