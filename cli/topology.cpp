#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/text/topology_text.h"
#include "studies/topology/topology_report.h"

namespace tandem::cli {

CLI::App* TopologyCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("topology", "the cluster, its links, and where each communicator lies on them");
  options.add_to(*command);
  return command;
}

ExitCode TopologyCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  std::unique_ptr<OutputFile> file;
  if (!options.json.empty() && options.json != "-") file = std::make_unique<OutputFile>(options.json);
  const TopologyReport report = report_topology(scenario);
  if (file) {
    file->write(to_json(report));
    file->commit();
  }
  std::cout << (options.json == "-" ? to_json(report) : to_text(report, screen_on(STDOUT_FILENO)));
  return ExitCode::done;
}

}  // namespace tandem::cli
